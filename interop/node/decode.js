// Decodes the messages of a topic in the .db3 files of a bag with nothing but the definition that the bag holds in its table
// message_definitions, by libraries that know nothing of gobag: @foxglove/rosmsg reads the definition,
// @foxglove/rosmsg2-serialization the messages. Prints one JSON object a line: the definition's row first, then the messages
// as {"stamp": ns, "value": …}. Integers of 64 bits are strings, since JSON numbers are not exact.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const { parse } = require("@foxglove/rosmsg");
const { MessageReader } = require("@foxglove/rosmsg2-serialization");
const initSqlJs = require("@foxglove/sql.js");

// rows runs a query and returns its rows as objects.
function rows(db, query, args) {
  const statement = db.prepare(query, args);
  const all = [];
  while (statement.step()) all.push(statement.getAsObject());
  statement.free();
  return all;
}

function plain(key, value) {
  if (typeof value === "bigint") return value.toString();
  return ArrayBuffer.isView(value) ? Array.from(value) : value;
}

async function main() {
  const [dir, topic] = process.argv.slice(2);
  const wasm = path.join(path.dirname(require.resolve("@foxglove/sql.js")), "sql-wasm.wasm");
  const SQL = await initSqlJs({ wasmBinary: fs.readFileSync(wasm) });
  const files = fs.readdirSync(dir).filter((f) => f.endsWith(".db3")).sort();
  let reader;
  for (const file of files) {
    const db = new SQL.Database({ data: new Uint8Array(fs.readFileSync(path.join(dir, file))) });
    const [t] = rows(db, "select id, type, type_description_hash from topics where name = ?", [topic]);
    if (!t) throw new Error(`${file}: no topic ${topic}`);
    const [d] = rows(db, "select * from message_definitions where topic_type = ?", [t.type]);
    if (!d) throw new Error(`${file}: no definition of ${t.type}`);
    if (d.encoding !== "ros2msg") throw new Error(`${file}: the definition of ${t.type} is ${d.encoding}`);
    if (!reader) {
      console.log(JSON.stringify(d));
      reader = new MessageReader(parse(d.encoded_message_definition, { ros2: true }));
    }
    for (const m of rows(db, "select cast(timestamp as text) as stamp, data from messages where topic_id = ? order by timestamp, id", [t.id]))
      console.log(JSON.stringify({ stamp: m.stamp, value: reader.readMessage(m.data) }, plain));
    db.close();
  }
}

main().catch((err) => {
  console.error(`decode bag: ${err.message}`);
  process.exit(1);
});
