// Reads the .mcap files of a bag with @mcap/core, a reader that knows nothing of gobag, through their index, and prints
// one JSON object a line: the topics, then the messages in the reader's order. 64-bit
// numbers are strings.
"use strict";

const fs = require("node:fs/promises");
const path = require("node:path");
const { McapIndexedReader } = require("@mcap/core");
const { decompress } = require("fzstd");
const { fnv1a } = require("./hash.js");

// readable is what the reader wants of a file.
function readable(file) {
  return {
    size: async () => BigInt((await file.stat()).size),
    read: async (offset, size) => {
      const bytes = new Uint8Array(Number(size));
      const { bytesRead } = await file.read(bytes, 0, bytes.length, Number(offset));
      if (bytesRead !== bytes.length) throw new Error(`${bytesRead} bytes at ${offset}, ${size} were asked for`);
      return bytes;
    },
  };
}

async function main() {
  const [dir] = process.argv.slice(2);
  const files = (await fs.readdir(dir)).filter((f) => f.endsWith(".mcap")).sort((a, b) => a.length - b.length || (a < b ? -1 : 1));
  if (files.length === 0) throw new Error(`no .mcap file in ${dir}`);
  const topics = new Map();
  const lines = [];
  for (const name of files) {
    const file = await fs.open(path.join(dir, name));
    const reader = await McapIndexedReader.Initialize({
      readable: readable(file),
      decompressHandlers: { zstd: (buffer, size) => decompress(buffer, new Uint8Array(Number(size))) },
    });
    const { schemasById, channelsById, statistics } = reader;
    for (const c of channelsById.values()) {
      const s = schemasById.get(c.schemaId);
      const key = `${c.topic} ${s.name}`;
      topics.set(key, {
        name: c.topic, type: s.name, typehash: c.metadata.get("topic_type_hash") ?? "", format: c.messageEncoding,
        count: (topics.get(key)?.count ?? 0) + Number(statistics.channelMessageCounts.get(c.id) ?? 0n),
        qostext: c.metadata.get("offered_qos_profiles") ?? "", encoding: s.encoding,
        definition: new TextDecoder().decode(s.data),
      });
    }
    for await (const m of reader.readMessages()) {
      const c = channelsById.get(m.channelId);
      lines.push({
        topic: c.topic, type: schemasById.get(c.schemaId).name, stamp: `${m.logTime}`, length: m.data.length,
        hash: fnv1a(m.data), send: `${m.publishTime}`, seq: `${m.sequence}`,
      });
    }
    await file.close();
  }
  process.stdout.write([...topics.values(), ...lines].map((l) => JSON.stringify(l) + "\n").join(""));
}

main().catch((err) => {
  console.error(`read bag: ${err.message}`);
  process.exit(1);
});
