"""Reads bags with readers that know nothing of gobag and prints what they say, one JSON object a line.

  read.py rosbags BAG        the directory, with rosbags: sqlite3 and mcap, compressed or not
  read.py mcap BAG           the .mcap files of a directory, with mcap
  read.py decode BAG TOPIC   messages of a topic of .mcap files, decoded by mcap-ros2-support with the schema in the file
  read.py decode-rosbags BAG TOPIC   the same by rosbags, with the definition in the bag

Topics come first, then messages in the order in which the reader gives them. 64-bit numbers are strings.
"""

import json
import sys
from pathlib import Path

PRIME, MASK = 0x100000001B3, (1 << 64) - 1


def fnv1a(data):
    h = 0xCBF29CE484222325
    for c in data:
        h = ((h ^ c) * PRIME) & MASK
    return h


def say(**fields):
    print(json.dumps(fields))


def message(topic, msgtype, stamp, data, **more):
    say(topic=topic, type=msgtype, stamp=str(stamp), length=len(data), hash=f"{fnv1a(data):016x}", **more)


def rosbags(bag):
    from rosbags.rosbag2 import Reader

    with Reader(bag) as reader:
        for c in reader.connections:
            qos = [[q.history.value, q.depth, q.reliability.value, q.durability.value] for q in c.ext.offered_qos_profiles]
            say(name=c.topic, type=c.msgtype, count=c.msgcount, typehash=c.digest, format=c.ext.serialization_format,
                qos=qos, definition=c.msgdef.data)
        for c, stamp, data in reader.messages():
            message(c.topic, c.msgtype, stamp, data)


def mcap_files(bag):
    return sorted(Path(bag).glob("*.mcap"), key=lambda p: (len(p.name), p.name))


def mcap(bag):
    from mcap.reader import make_reader

    topics, messages = {}, []
    for path in mcap_files(bag):
        with path.open("rb") as f:
            reader = make_reader(f, validate_crcs=True)
            summary = reader.get_summary()
            counts = summary.statistics.channel_message_counts
            for c in summary.channels.values():
                s = summary.schemas[c.schema_id]
                t = topics.setdefault((c.topic, s.name), {"count": 0})
                t.update(name=c.topic, type=s.name, count=t["count"] + counts.get(c.id, 0), format=c.message_encoding,
                         typehash=c.metadata.get("topic_type_hash", ""), qostext=c.metadata.get("offered_qos_profiles", ""),
                         encoding=s.encoding, definition=s.data.decode())
            for s, c, m in reader.iter_messages():
                messages.append(((c.topic, s.name, m.log_time, m.data), {"send": str(m.publish_time), "seq": str(m.sequence)}))
    for t in topics.values():
        say(**t)
    for fields, more in messages:
        message(*fields, **more)


def plain(value):
    """The fields of a decoded message by name."""
    if hasattr(value, "__slots__") or hasattr(value, "__dataclass_fields__"):
        names = getattr(value, "__dataclass_fields__", None) or value.__slots__
        return {n: plain(getattr(value, n)) for n in names if not n.startswith("_")}
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, bytes):
        return list(value)
    return value


def decode(bag, topic):
    from mcap.reader import make_reader
    from mcap_ros2.decoder import DecoderFactory

    for path in mcap_files(bag):
        with path.open("rb") as f:
            reader = make_reader(f, decoder_factories=[DecoderFactory()])
            for _, _, m, value in reader.iter_decoded_messages(topics=[topic]):
                say(stamp=str(m.log_time), value=plain(value))


def decode_rosbags(bag, topic):
    from rosbags.rosbag2 import Reader
    from rosbags.typesys import get_types_from_msg, get_typestore, Stores

    with Reader(bag) as reader:
        store = get_typestore(Stores.EMPTY)
        wanted = [c for c in reader.connections if c.topic == topic]
        for c in wanted:
            store.register(get_types_from_msg(c.msgdef.data, c.msgtype))
        for c, stamp, data in reader.messages(wanted):
            value = plain(store.deserialize_cdr(data, c.msgtype))
            say(stamp=str(stamp), value=value)


if __name__ == "__main__":
    what, *arguments = sys.argv[1:]
    {"rosbags": rosbags, "mcap": mcap, "decode": decode, "decode-rosbags": decode_rosbags}[what](*arguments)
