from dataclasses import dataclass, field
from cyclonedds.idl import IdlStruct
from cyclonedds.idl.types import *
from cyclonedds.idl.annotations import final
import cyclonedds.idl as idl
from cyclonedds.idl._support import Endianness
import json
@dataclass
@final
class Inner(IdlStruct, typename="t.msg.Inner"):
    id: uint8
    name: str
    value: float64
@dataclass
@final
class T(IdlStruct, typename="t.msg.T"):
    a: uint8
    d: float64
    b: bool
    s: str
    n: sequence[float64]
    i: int16
    strs: sequence[str]
    arr: array[str, 2]
    inner: Inner
    list: sequence[Inner]
    pair: array[Inner, 2]
    f: array[float32, 3]
    bytes: sequence[uint8]
    u64: uint64
mk=lambda n: Inner(id=n,name="n%d"%n,value=n/2)
out=[]
for k in range(3):
    v=T(a=7,d=1.5,b=True,s="hey"*k,n=[0.25*j for j in range(k)],i=-3,strs=["x"*j for j in range(k)],arr=["p","qq"],inner=mk(1),list=[mk(j) for j in range(k)],pair=[mk(8),mk(9)],f=[1,2,3],bytes=[1,2,3][:k],u64=2**63+1)
    for v2 in (False,True):
        for end in (Endianness.Little,Endianness.Big):
            b=v.serialize(use_version_2=v2,endianness=end)
            out.append(dict(case=k,xcdr2=v2,big=end==Endianness.Big,cdr=b.hex()))
for o in out: print(json.dumps(o))
