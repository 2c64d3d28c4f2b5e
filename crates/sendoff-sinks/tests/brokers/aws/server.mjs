// fauxqs on the loopback address alone, with what it has acknowledged kept in a directory: `server.mjs FAUXQS PORT DIRECTORY`.

import { pathToFileURL } from "node:url";

const [packages, port, directory] = process.argv.slice(2);
const part = (file) => import(pathToFileURL(`${packages}/node_modules/fauxqs/dist/${file}`));
const { buildApp } = await part("app.js");
const { SqsStore } = await part("sqs/sqsStore.js");
const { SnsStore } = await part("sns/snsStore.js");
const { PersistenceManager } = await part("persistence.js");

// As its own `startFauxqs` does it, which listens on every address.
const [sqsStore, snsStore, kept] = [new SqsStore(), new SnsStore(), new PersistenceManager(directory)];
// What is written is not lost with the process; only a machine that fails would lose it.
kept.db.exec("PRAGMA synchronous = OFF");
kept.loadSqsAndSns(sqsStore, snsStore);
for (const store of [sqsStore, snsStore, ...sqsStore.allQueues()]) {
  store.persistence = kept;
}
await buildApp({ logger: false, stores: { sqsStore, snsStore } }).listen({ port: Number(port), host: "127.0.0.1" });
