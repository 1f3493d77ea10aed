#!/usr/bin/python3
"""Typed subscriptions of ROS 1 for the tests, on rospy: what is not right in type, md5sum or payload does not come through.

sub.py SECONDS COUNT    subscribes to every topic below /types/ with the class of its type as soon as it is published, and
                        writes each message again; ends when COUNT have come

Prints {"event": "ready"}, and at the end {"event": "got", "topics": {TOPIC: SHA-256 of the payload written again}}.
"""
import hashlib
import io
import json
import sys
import time

import roslib.message
import rospy

got = {}


def take(topic):
    def callback(m):
        out = io.BytesIO()
        m.serialize(out)
        got[topic] = hashlib.sha256(out.getvalue()).hexdigest()
    return callback


def main():
    seconds, count = float(sys.argv[1]), int(sys.argv[2])
    rospy.init_node("sub", anonymous=True, disable_signals=True)
    print(json.dumps({"event": "ready"}), flush=True)
    subs = {}
    end = time.monotonic() + seconds
    while time.monotonic() < end and len(got) < count:
        for topic, typ in rospy.get_published_topics("/types"):
            if topic not in subs:
                cls = roslib.message.get_message_class(typ)
                subs[topic] = rospy.Subscriber(topic, cls, take(topic))
        time.sleep(0.2)
    print(json.dumps({"event": "got", "topics": got}), flush=True)


main()
