// What a program with the official Node.js client does; prints what it saw, as one JSON object.
import { createReadStream } from "node:fs";
import { writeFile } from "node:fs/promises";
import OpenAI, { toFile } from "openai";

const [baseURL, apiKey, strangerKey, folder] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const endpoint = "/v1/chat/completions";
const line = JSON.stringify({
  custom_id: "a",
  method: "POST",
  url: endpoint,
  body: { model: "qwen3-8b", messages: [{ role: "user", content: "hi" }] },
});
const seen = {};

async function refusal(asked) {
  try {
    await asked;
  } catch (error) {
    return { kind: error.constructor.name, status: error.status, code: error.code, param: error.param };
  }
  return null;
}

// Files: as a stream of a file, and of memory.
await writeFile(`${folder}/requests.jsonl`, `${line}\n`);
const file = await client.files.create({ file: createReadStream(`${folder}/requests.jsonl`), purpose: "batch" });
const other = await client.files.create({
  file: await toFile(Buffer.from(`${line}\n`), "other.jsonl"),
  purpose: "batch",
  expires_after: { anchor: "created_at", seconds: 7200 },
});
seen.file = { filename: file.filename, bytes: file.bytes, purpose: file.purpose };
seen.lifetime = other.expires_at - other.created_at;
seen.same = (await client.files.retrieve(file.id)).id === file.id;
const listed = [];
for await (const each of client.files.list({ limit: 1, order: "asc" })) listed.push(each.id);
seen.listed = listed.map((id) => (id === file.id ? "first" : id === other.id ? "second" : "unknown"));
const content = await client.files.content(file.id);
let streamed = "";
for await (const piece of content.body) streamed += Buffer.from(piece).toString();
seen.content = streamed;
seen.deleted = await client.files.delete(other.id);
seen.gone = await refusal(client.files.retrieve(other.id));

// An upload in parts.
const parts = ["a".repeat(4 * 2 ** 20), "b".repeat(10)];
const upload = await client.uploads.create({
  filename: "large.jsonl",
  bytes: parts.join("").length,
  mime_type: "application/jsonl",
  purpose: "batch",
});
const ids = [];
for (const part of parts) {
  ids.push((await client.uploads.parts.create(upload.id, { data: await toFile(Buffer.from(part)) })).id);
}
const completed = await client.uploads.complete(upload.id, { part_ids: ids });
seen.upload = { status: completed.status, bytes: completed.file.bytes };

// Batches.
const create = (changes = {}, options = {}) =>
  client.batches.create(
    { input_file_id: file.id, endpoint, completion_window: "24h", ...changes },
    options,
  );
const batches = [await create(), await create({ metadata: { run: "nightly" } }), await create()];
seen.status = batches[1].status;
seen.metadata = (await client.batches.retrieve(batches[1].id)).metadata;
const pages = [];
for await (const each of client.batches.list({ limit: 2 })) pages.push(each.id);
seen.order = pages.map((id) => batches.findIndex((each) => each.id === id));
seen.cancelled = (await client.batches.cancel(batches[0].id)).status;
const key = { headers: { "Idempotency-Key": "once" } };
seen.once = (await create({}, key)).id === (await create({}, key)).id;

// Refusals, by the client's own classes.
seen.refusals = {
  file: await refusal(create({ input_file_id: "file-none" })),
  window: await refusal(create({ completion_window: "soon" })),
  batch: await refusal(client.batches.retrieve("batch_none")),
  cursor: await refusal(client.batches.list({ after: "batch_none" })),
  key: await refusal(new OpenAI({ baseURL, apiKey: "none", maxRetries: 0 }).batches.list()),
  team: await refusal(new OpenAI({ baseURL, apiKey: strangerKey, maxRetries: 0 }).batches.list()),
  reused: await refusal(create({ completion_window: "1h" }, key)),
  large: await refusal(
    client.files.create({ file: await toFile(Buffer.alloc(5 * 2 ** 20), "large.jsonl"), purpose: "batch" }),
  ),
};

// An answer that is lost, and a platform that is busy: the client asks again.
const patient = new OpenAI({ baseURL, apiKey, maxRetries: 3 });
const before = pages.length + 1;
await patient.batches.create({ input_file_id: file.id, endpoint, completion_window: "2h" });
let count = 0;
for await (const _ of client.batches.list()) count += 1;
seen.made = count - before;
seen.busy = await refusal(client.batches.retrieve("busy"));
seen.patience = (await refusal(patient.batches.retrieve("busy")))?.status ?? 200;

process.stdout.write(JSON.stringify(seen));
