// What a program with the official Node.js client sees of a front door; prints it as one JSON object.
import OpenAI from "openai";

const [baseURL, apiKey, poorKey, wrongKey] = process.argv.slice(2);
const question = { model: "public/model", messages: [{ role: "user", content: "Count." }], max_tokens: 9 };
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const seen = {};

async function refusal(key, body) {
  try {
    await new OpenAI({ baseURL, apiKey: key, maxRetries: 0 }).chat.completions.create({ ...question, ...body });
  } catch (error) {
    return { kind: error.constructor.name, status: error.status, code: error.code, type: error.type };
  }
  return null;
}

const answer = await client.chat.completions.create(question);
seen.answer = { text: answer.choices[0].message.content, tokens: answer.usage.completion_tokens };
seen.stream = [];
for await (const part of await client.chat.completions.create({ ...question, stream: true })) {
  seen.stream.push(part.choices.length === 0 ? "no choices" : (part.choices[0].delta.content ?? ""));
}
const asked = { ...question, stream: true, stream_options: { include_usage: true } };
for await (const part of await client.chat.completions.create(asked)) {
  if (part.usage && part.choices.length === 0) seen.usage = part.usage.completion_tokens;
}
seen.models = [];
for await (const model of client.models.list()) seen.models.push(model.id);
seen.wrongKey = await refusal(wrongKey, {});
seen.unknownModel = await refusal(apiKey, { model: "nobody/knows" });
seen.poor = await refusal(poorKey, { max_tokens: 1000 });
seen.tooLong = await refusal(apiKey, { messages: [{ role: "user", content: "too long" }] });
console.log(JSON.stringify(seen));
