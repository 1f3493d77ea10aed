// Reads the .db3 files of a bag with @foxglove/rosbag2, a reader that knows nothing of gobag, and prints a line a
// message: topic, type, stamp in ns, length, FNV-1a 64 of the payload. With --topics it prints the topics with their
// counts and their QoS instead, one JSON object a line.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const { fnv1a } = require("./hash.js");
const { Rosbag2 } = require("@foxglove/rosbag2");
const { SqliteSqljs } = require("@foxglove/rosbag2-web");

async function main() {
  // The library is made for browsers and would fetch its WebAssembly by URL.
  const wasm = path.join(path.dirname(require.resolve("@foxglove/sql.js")), "sql-wasm.wasm");
  await SqliteSqljs.Initialize({ wasmBinary: fs.readFileSync(wasm) });

  const [dir, mode] = process.argv.slice(2);
  const files = fs.readdirSync(dir).filter((f) => f.endsWith(".db3")).sort();
  if (files.length === 0) throw new Error(`no .db3 file in ${dir}`);
  const bag = new Rosbag2(files.map((f) => new SqliteSqljs(new Uint8Array(fs.readFileSync(path.join(dir, f))))));
  await bag.open();
  if (mode === "--topics") {
    const counts = await bag.messageCounts();
    for (const t of await bag.readTopics())
      console.log(JSON.stringify({ name: t.name, type: t.type, count: counts.get(t.name) ?? 0, qos: t.offeredQosProfiles }));
  } else {
    const lines = [];
    for await (const m of bag.readMessages({ rawMessages: true })) {
      const ns = BigInt(m.timestamp.sec) * 1000000000n + BigInt(m.timestamp.nsec);
      lines.push(`${m.topic.name} ${m.topic.type} ${ns} ${m.data.length} ${fnv1a(m.data)}`);
    }
    process.stdout.write(lines.map((l) => l + "\n").join(""));
  }
  await bag.close();
}

main().catch((err) => {
  console.error(`read bag: ${err.message}`);
  process.exit(1);
});
