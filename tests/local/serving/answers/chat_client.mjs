// What a program with the official Node.js client gets from chat models; prints what it saw, as one JSON object.
import OpenAI from "openai";

const [baseURL, tools, echo, ...models] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey: "none", maxRetries: 0 });
const question = (model) => ({
  model,
  messages: [{ role: "user", content: "Weather in Paris?" }],
  max_tokens: 900,
  tools: JSON.parse(tools),
});
const call = ({ id, function: { name, arguments: given } }) => ({ id, name, arguments: given });
const seenOf = ({ message, finish_reason }) => ({
  content: message.content ?? "",
  reasoning: message.reasoning_content ?? "",
  calls: (message.tool_calls ?? []).map(call),
  finish: finish_reason,
});

async function whole(model) {
  return seenOf((await client.chat.completions.create(question(model))).choices[0]);
}

// The pieces of a stream, joined as the API's reference says: calls by their index.
async function streamed(model) {
  const seen = { content: "", reasoning: "", calls: [], finish: null };
  for await (const chunk of await client.chat.completions.create({ ...question(model), stream: true })) {
    for (const { delta, finish_reason } of chunk.choices) {
      seen.content += delta.content ?? "";
      seen.reasoning += delta.reasoning_content ?? "";
      seen.finish = finish_reason ?? seen.finish;
      for (const piece of delta.tool_calls ?? []) {
        const made = (seen.calls[piece.index] ??= { id: "", name: "", arguments: "" });
        made.id ||= piece.id ?? "";
        made.name += piece.function?.name ?? "";
        made.arguments += piece.function?.arguments ?? "";
      }
    }
  }
  return seen;
}

// The client's own helper, which also checks the pieces. It does not know `reasoning_content`.
async function helper(model) {
  let reasoning = "";
  const stream = client.chat.completions.stream(question(model));
  stream.on("chunk", (chunk) => {
    for (const { delta } of chunk.choices) reasoning += delta.reasoning_content ?? "";
  });
  const completion = await stream.finalChatCompletion();
  return { ...seenOf(completion.choices[0]), reasoning };
}

const seen = { models: {} };
for (const model of models) {
  seen.models[model] = {
    whole: await whole(model),
    streamed: await streamed(model),
    helper: await helper(model),
  };
}
const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const { tools: _, ...plain } = question(echo);
const answer = await client.chat.completions.create({
  ...plain,
  response_format: { type: "json_schema", json_schema: { name: "place", schema, strict: true } },
});
seen.echo = answer.choices[0].message.content;
process.stdout.write(JSON.stringify(seen));
