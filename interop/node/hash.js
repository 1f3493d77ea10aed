// fnv1a is the FNV-1a 64 of a payload in hexadecimal. It works in 32-bit limbs: BigInt a byte would be a hundred times
// slower.
"use strict";

exports.fnv1a = function (data) {
  let hi = 0xcbf29ce4, lo = 0x84222325;
  for (let i = 0; i < data.length; i++) {
    lo = (lo ^ data[i]) >>> 0;
    // times 0x100000001b3 = 2^40 + 0x1b3
    const low = lo * 0x1b3;
    const carry = Math.floor(low / 0x100000000);
    hi = (Math.imul(hi, 0x1b3) + carry + (lo << 8)) >>> 0;
    lo = low >>> 0;
  }
  return hi.toString(16).padStart(8, "0") + lo.toString(16).padStart(8, "0");
};
