// Compares payloads of ROS 1 with what gobag made of them for ROS 2, by decoders that know nothing of gobag:
// @foxglove/rosmsg-serialization and @foxglove/rosmsg2-serialization. Reads JSON lines {name, def1, def2, one, two}: both
// definition texts, both payloads in hexadecimal. Prints {"event": "compared", same, different, types} at the end, and up
// to 20 differences before.
"use strict";

const readline = require("node:readline");
const { parse } = require("@foxglove/rosmsg");
const { MessageReader: Reader1 } = require("@foxglove/rosmsg-serialization");
const { MessageReader: Reader2 } = require("@foxglove/rosmsg2-serialization");

const levels = { 1: 10, 2: 20, 4: 30, 8: 40, 16: 50 };

// difference returns where a value of ROS 1 and one of ROS 2 differ, undefined where they do not.
function difference(a, b, path) {
  if (typeof a === "number" && typeof b === "number") {
    if (Object.is(a, b) || (Number.isNaN(a) && Number.isNaN(b))) return undefined;
    return a + 256 === b && a < 0 ? undefined : `${path}: ${a} and ${b}`; // byte: signed there, unsigned here
  }
  if (ArrayBuffer.isView(a) || Array.isArray(a)) {
    if (a.length !== b.length) return `${path}: ${a.length} and ${b.length} elements`;
    for (let i = 0; i < a.length; i++) {
      const d = difference(a[i], b[i], `${path}[${i}]`);
      if (d) return d;
    }
    return undefined;
  }
  if (a !== null && typeof a === "object") {
    const seen = new Set();
    for (const [k, v] of Object.entries(a)) {
      const key = k.toLowerCase();
      if (key === "seq" && "frame_id" in a && !("seq" in b)) continue; // of the header
      if (key === "nsec" && !("nsec" in b)) { b = { ...b, nsec: b.nanosec }; delete b.nanosec; }
      if (!(key in b)) return `${path}.${k}: not in ROS 2`;
      seen.add(key);
      const d = difference(v, b[key], `${path}.${k}`);
      if (d) return d;
    }
    for (const [k, v] of Object.entries(b)) if (!seen.has(k) && !empty(v)) return `${path}.${k}: set in ROS 2 only`;
    return undefined;
  }
  return a === b ? undefined : `${path}: ${a} and ${b}`;
}

// empty says whether a value is the default of its type.
function empty(v) {
  if (ArrayBuffer.isView(v) || Array.isArray(v)) return v.length === 0;
  if (v !== null && typeof v === "object") return Object.values(v).every(empty);
  return v === 0 || v === "" || v === false || v === 0n;
}

function compare(name, a, b) {
  if (name === "rosgraph_msgs/Log") a = { stamp: a.header.stamp, level: levels[a.level], name: a.name, msg: a.msg, file: a.file, function: a.function, line: a.line };
  if (name === "std_msgs/Time" || name === "std_msgs/Duration") a = a.data;
  if (name === "std_msgs/Empty" || Object.keys(a).length === 0) return undefined;
  return difference(a, b, name);
}

async function main() {
  const readers = new Map();
  let same = 0, different = 0;
  for await (const line of readline.createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    const m = JSON.parse(line);
    if (!readers.has(m.name)) {
      readers.set(m.name, [new Reader1(parse(m.def1)), new Reader2(parse(m.def2, { ros2: true }))]);
    }
    const [one, two] = readers.get(m.name);
    let d;
    try {
      d = compare(m.name, one.readMessage(Buffer.from(m.one, "hex")), two.readMessage(Buffer.from(m.two, "hex")));
    } catch (err) {
      d = `${m.name}: ${err.message}`;
    }
    if (d === undefined) { same++; continue; }
    if (++different <= 20) console.log(d);
  }
  console.log(JSON.stringify({ event: "compared", same, different, types: readers.size }));
}

main().catch((err) => {
  console.error(`compare: ${err.stack}`);
  process.exit(1);
});
