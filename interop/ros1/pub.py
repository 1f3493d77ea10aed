#!/usr/bin/python3
"""Publishers of ROS 1 for the tests, on rospy.

pub.py stream SECONDS   /str 50 Hz, /imu 100 Hz, /img1 (1 MB) 10 Hz, /img20 (20 MB) 1 Hz, all different; /lat latched once
pub.py types SECONDS    one latched message with content on /types/PACKAGE/TYPE for every installed message type

Prints {"event": "ready"} when it begins, and {"event": "sent", TOPIC: COUNT, …} at the end.
"""
import importlib
import json
import random
import signal
import sys
import time

import genpy
import rospy

PACKAGES = ["std_msgs", "geometry_msgs", "sensor_msgs", "rosgraph_msgs", "nav_msgs", "diagnostic_msgs", "visualization_msgs",
            "trajectory_msgs", "stereo_msgs", "shape_msgs", "actionlib_msgs", "map_msgs"]
RANGES = {"int8": (-128, 127), "byte": (-128, 127), "uint8": (0, 255), "char": (0, 255), "int16": (-2**15, 2**15 - 1), "uint16": (0, 2**16 - 1),
          "int32": (-2**31, 2**31 - 1), "uint32": (0, 2**32 - 1), "int64": (-2**63, 2**63 - 1), "uint64": (0, 2**64 - 1)}


def say(**event):
    print(json.dumps(event), flush=True)


def value(rng, typ):
    """A random value of a type by its name in ROS 1."""
    if typ.endswith("]"):
        base, size = typ[:-1].rsplit("[", 1)
        n = int(size) if size else rng.randrange(4)
        if base in ("uint8", "char"):
            return bytes(rng.randrange(256) for _ in range(n))
        return [value(rng, base) for _ in range(n)]
    if typ in RANGES:
        return rng.randint(*RANGES[typ])
    if typ == "bool":
        return rng.random() < 0.5
    if typ in ("float32", "float64"):
        return rng.randrange(-1000, 1000) / 8
    if typ == "string":
        return "".join(rng.choice("abcdefghij ") for _ in range(rng.randrange(12)))
    if typ == "time":
        return genpy.Time(rng.randrange(2**31), rng.randrange(10**9))
    if typ == "duration":
        return genpy.Duration(rng.randrange(-1000, 1000), rng.randrange(10**9))
    if typ == "Header":
        typ = "std_msgs/Header"
    package, name = typ.split("/")
    return fill(rng, getattr(importlib.import_module(package + ".msg"), name))


def fill(rng, cls):
    m = cls()
    for slot, typ in zip(m.__slots__, m._slot_types):
        setattr(m, slot, value(rng, typ))
    if cls._type == "rosgraph_msgs/Log":
        m.level = 4
    return m


def classes():
    for package in PACKAGES:
        try:
            module = importlib.import_module(package + ".msg")
        except ImportError:
            continue
        for name in sorted(dir(module)):
            cls = getattr(module, name)
            if isinstance(cls, type) and getattr(cls, "_type", "").startswith(package + "/"):
                yield cls


def stream(seconds):
    from sensor_msgs.msg import Image, Imu
    from std_msgs.msg import String
    pubs = {t: rospy.Publisher(t, c, queue_size=200) for t, c in [("/str", String), ("/imu", Imu), ("/img1", Image), ("/img20", Image)]}
    lat = rospy.Publisher("/lat", String, latch=True, queue_size=1)
    lat.publish(String("latched"))
    sent = {t: 0 for t in pubs}
    say(event="ready")
    wait_for(pubs.values())
    images = {"/img1": bytearray(10**6), "/img20": bytearray(20 * 10**6)}
    begin = time.monotonic()
    tick = 0
    while time.monotonic() - begin < seconds and not rospy.is_shutdown():
        for topic, every in (("/str", 2), ("/imu", 1), ("/img1", 10), ("/img20", 100)):
            if tick % every:
                continue
            n = sent[topic]
            if topic == "/str":
                m = String("message %d" % n)
            elif topic == "/imu":
                m = Imu()
                m.header.stamp = rospy.Time.now()
                m.header.frame_id = "imu"
                m.linear_acceleration.z = n
            else:
                data = images[topic]
                data[0:4] = n.to_bytes(4, "little")
                m = Image(height=1, width=len(data), step=len(data), encoding="mono8", data=bytes(data))
                m.header.stamp = rospy.Time.now()
            pubs[topic].publish(m)
            sent[topic] += 1
        tick += 1
        time.sleep(max(0, begin + tick * 0.01 - time.monotonic()))
    time.sleep(1.5)  # what is queued
    say(event="sent", **sent)


def wait_for(pubs):
    """Waits until every publisher has a subscriber, ten seconds at most."""
    end = time.monotonic() + 10
    while any(p.get_num_connections() == 0 for p in pubs) and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(0.5)


def types(seconds):
    rng = random.Random(7)
    pubs = []
    for cls in classes():
        p = rospy.Publisher("/types/" + cls._type, cls, latch=True, queue_size=1)
        p.publish(fill(rng, cls))
        pubs.append(p)
    say(event="ready", types=len(pubs))
    end = time.monotonic() + seconds
    while time.monotonic() < end and not rospy.is_shutdown():
        time.sleep(0.1)
    say(event="sent", types=len(pubs))


def main():
    mode, seconds = sys.argv[1], float(sys.argv[2])
    rospy.init_node("pub_" + mode, anonymous=True, disable_signals=True)
    signal.signal(signal.SIGINT, lambda *_: rospy.signal_shutdown("asked"))
    {"stream": stream, "types": types}[mode](seconds)


main()
