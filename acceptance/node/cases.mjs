// The OpenAI client for Node, chat completions and responses, as its users call it.
//
//   node cases.mjs --list           the cases' names, a JSON list
//   node cases.mjs < place.json     runs them, and prints {"case": ..., "error": ...} line by line
//
// The place: {base, dialect, key, model, said, thought, tool, picture, told_picture, cities, kind},
// and for the fault upstream `words`: what is said to it in place of a play's name.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import OpenAI from "openai";

const place = process.argv.includes("--list") ? {} : JSON.parse(readFileSync(0, "utf8"));
const { model, said, thought, tool, cities } = place;

const client = (more = {}) =>
  new OpenAI({ baseURL: `${place.base}/v1`, apiKey: place.key, maxRetries: 0, ...more });
const user = (content) => ({ role: "user", content });
const resultOf = (city) => `sunny in ${city}, 21°`;
const play = (name) => place.words?.[name] ?? name;

function finished(text, count) {
  const named = cities.slice(0, count);
  if (place.words === undefined) {
    assert.equal(text, named.map((city) => `${city}: ${resultOf(city)}`).join("; "));
    return;
  }
  const where = named.map((city) => text.indexOf(`sunny in ${city}, 21`));
  assert.ok(where[0] > 0, text);
  assert.deepEqual(where, where.toSorted((a, b) => a - b));
}

function lookedUp(calls, count) {
  const wanted = cities.slice(0, count).map((city, at) => [city, place.words ? at + 1 : 2]);
  const given = calls.map((call) => JSON.parse(call.arguments));
  assert.deepEqual(given.map(({ city, days }) => [city, days]), wanted);
  assert.deepEqual(calls.map((call) => call.name), Array(count).fill("get_weather"));
  const ids = new Set(calls.map((call) => call.id));
  assert.equal(ids.size, count);
  assert.ok(!ids.has(undefined) && !ids.has(""));
}

async function raised(kind, ask) {
  try {
    await ask();
  } catch (error) {
    assert.ok(error instanceof kind, `${error.constructor.name}: ${error.message}`);
    return error;
  }
  throw new Error(`${kind.name} is not raised`);
}

// --- chat completions ---------------------------------------------------------------------------

const chatTool = { type: "function", function: tool };
const chatUsage = (usage) =>
  assert.deepEqual(
    [usage.prompt_tokens, usage.prompt_tokens_details.cached_tokens, usage.completion_tokens],
    [120, 100, 17],
  );
const created = (messages, more = {}, options = {}) =>
  client(options).chat.completions.create({ model, messages, ...more });
const gathered = (messages, more = {}) =>
  client().chat.completions.stream({ model, messages, ...more }).finalChatCompletion();

async function chatLooksUp(words, count, ask) {
  const messages = [user(play(words))];
  const first = (await ask(messages, { tools: [chatTool] })).choices[0];
  assert.equal(first.finish_reason, "tool_calls");
  const calls = first.message.tool_calls.map((call) => ({ id: call.id, ...call.function }));
  lookedUp(calls, count);
  messages.push(first.message);
  for (const call of calls) {
    const content = resultOf(JSON.parse(call.arguments).city);
    messages.push({ role: "tool", tool_call_id: call.id, content });
  }
  const second = (await ask(messages, { tools: [chatTool] })).choices[0];
  finished(second.message.content, count);
  assert.equal(second.finish_reason, "stop");
}

async function chatError(words, kind, status, options = {}) {
  const error = await raised(kind, () => created([user(words)], {}, options));
  assert.equal(error.status, status);
  return error;
}

async function pieces(words) {
  let text = "";
  const finishes = [];
  for await (const chunk of await created([user(words)], { stream: true })) {
    for (const choice of chunk.choices) {
      text += choice.delta.content ?? "";
      if (choice.finish_reason) finishes.push(choice.finish_reason);
    }
  }
  return { text, finishes };
}

const chat = {
  whole: async () => {
    const answer = await created([user("[say]")]);
    assert.equal(answer.choices[0].message.content, said);
    assert.equal(answer.choices[0].finish_reason, "stop");
    chatUsage(answer.usage);
  },
  streamed: async () =>
    assert.deepEqual(await pieces("[say]"), { text: said, finishes: ["stop"] }),
  "by stream()": async () => {
    const answer = await gathered([user("[say]")], { stream_options: { include_usage: true } });
    assert.equal(answer.choices[0].message.content, said);
    chatUsage(answer.usage);
  },
  "cut at its length": async () =>
    assert.deepEqual(await pieces("[long]"), { text: said, finishes: ["length"] }),
  "a tool": () => chatLooksUp("[tool]", 1, created),
  "a tool, by stream()": () => chatLooksUp("[tool]", 1, gathered),
  "parallel tools": () => chatLooksUp("[parallel]", 2, created),
  "parallel tools, by stream()": () => chatLooksUp("[parallel]", 2, gathered),
  "parallel tools, by runTools": async () => {
    const called = (given) => resultOf(given.city);
    const runnable = { ...tool, function: called, parse: JSON.parse };
    const runner = client().chat.completions.runTools({
      model,
      messages: [user(play("[parallel]"))],
      tools: [{ type: "function", function: runnable }],
    });
    finished(await runner.finalContent(), 2);
  },
  "an image": async () => {
    const parts = [
      { type: "text", text: "[picture]" },
      { type: "image_url", image_url: { url: place.picture } },
    ];
    const answer = await created([user(parts)]);
    assert.equal(answer.choices[0].message.content, place.told_picture);
  },
  "thinking shown": async () => {
    const answer = await created([user("[think]")], { tools: [chatTool] });
    assert.equal(answer.choices[0].message.reasoning_content, thought);
  },
  "thinking there and back": () => chatLooksUp("[think]", 1, created),
  "thinking there and back, by stream()": async () => {
    if (place.dialect !== "chat") return chatLooksUp("[think]", 1, gathered);
    // stream() keeps the last piece alone of a member it does not know, and here bytes pass as
    // they are: its users gather such a member themselves.
    let shown = "";
    const more = { tools: [chatTool], stream: true };
    for await (const chunk of await created([user("[think]")], more)) {
      shown += chunk.choices[0]?.delta.reasoning_content ?? "";
    }
    assert.equal(shown, thought);
  },
  401: () => chatError("[say]", OpenAI.AuthenticationError, 401, { apiKey: "wrong" }),
  404: () => chatError("[404]", OpenAI.NotFoundError, 404),
  400: () => chatError("[unheard]", OpenAI.BadRequestError, 400),
  429: () => chatError(`[429 ${place.tag}]`, OpenAI.RateLimitError, 429),
  "429, then again": async () => {
    const began = Date.now();
    const answer = await created([user(`[429 ${place.tag}a]`)], {}, { maxRetries: 1 });
    assert.equal(answer.choices[0].message.content, said);
    assert.ok(Date.now() - began >= 950, `it waited ${Date.now() - began} ms of 1000`);
  },
  500: () => chatError("[500]", OpenAI.InternalServerError, 500),
  overloaded: () => chatError("[overloaded]", OpenAI.InternalServerError, 503),
  "an error inside a stream": () => raised(OpenAI.APIError, () => pieces("[fails]")),
  "a stream that is cut": async () => {
    // In its own dialect a stream passes as it is: an end without a finish reason.
    if (place.dialect === "chat") assert.deepEqual((await pieces("[cut]")).finishes, []);
    else await raised(OpenAI.APIError, () => pieces("[cut]"));
  },
  models: async () =>
    assert.deepEqual((await client().models.list()).data.map((one) => one.id), [model]),
};

// --- responses ----------------------------------------------------------------------------------

const flatTool = { type: "function", strict: false, ...tool };
const made = (input, more = {}, options = {}) =>
  client(options).responses.create({ model, input, ...more });
const awaited = (input, more = {}) =>
  client().responses.stream({ model, input, ...more }).finalResponse();

async function looksUp(words, count, ask) {
  const input = [user(play(words))];
  const more = { tools: [flatTool], store: false, include: ["reasoning.encrypted_content"] };
  const first = await ask(input, more);
  const items = first.output.filter((item) => item.type === "function_call");
  lookedUp(items.map((item) => ({ ...item, id: item.call_id })), count);
  input.push(...first.output);
  for (const item of items) {
    const output = resultOf(JSON.parse(item.arguments).city);
    input.push({ type: "function_call_output", call_id: item.call_id, output });
  }
  finished((await ask(input, more)).output_text, count);
}

async function kindsOf(words) {
  const kinds = [];
  let text = "";
  for await (const event of await made(words, { stream: true })) {
    kinds.push(event.type);
    if (event.type === "response.output_text.delta") text += event.delta;
  }
  return { kinds, text };
}

// An error that comes with the first words has its own status, and is raised.
async function endOf(words) {
  try {
    return (await kindsOf(words)).kinds.at(-1);
  } catch (caught) {
    assert.ok(caught instanceof OpenAI.InternalServerError, caught.message);
    return "response.failed";
  }
}

async function error(words, kind, status, options = {}) {
  const found = await raised(kind, () => made(words, {}, options));
  assert.equal(found.status, status);
}

const responses = {
  whole: async () => {
    const answer = await made("[say]");
    assert.equal(answer.output_text, said);
    assert.equal(answer.status, "completed");
    const { usage } = answer;
    assert.deepEqual(
      [usage.input_tokens, usage.input_tokens_details.cached_tokens, usage.output_tokens],
      [120, 100, 17],
    );
  },
  streamed: async () => {
    const { kinds, text } = await kindsOf("[say]");
    assert.equal(text, said);
    assert.equal(kinds[0], "response.created");
    assert.equal(kinds.at(-1), "response.completed");
  },
  "by stream()": async () => assert.equal((await awaited("[say]")).output_text, said),
  "cut at its length": async () => {
    const answer = await made("[long]");
    assert.equal(answer.incomplete_details.reason, "max_output_tokens");
  },
  "a tool": () => looksUp("[tool]", 1, made),
  "a tool, by stream()": () => looksUp("[tool]", 1, awaited),
  "parallel tools": () => looksUp("[parallel]", 2, made),
  "parallel tools, by stream()": () => looksUp("[parallel]", 2, awaited),
  "an image": async () => {
    const parts = [
      { type: "input_text", text: "[picture]" },
      { type: "input_image", image_url: place.picture, detail: "auto" },
    ];
    assert.equal((await made([user(parts)])).output_text, place.told_picture);
  },
  "thinking there and back": () => looksUp("[think]", 1, made),
  "thinking there and back, by stream()": () => looksUp("[think]", 1, awaited),
  401: () => error("[say]", OpenAI.AuthenticationError, 401, { apiKey: "wrong" }),
  404: () => error("[404]", OpenAI.NotFoundError, 404),
  400: () => error("[unheard]", OpenAI.BadRequestError, 400),
  429: () => error(`[429 ${place.tag}b]`, OpenAI.RateLimitError, 429),
  "429, then again": async () => {
    const answer = await made(`[429 ${place.tag}c]`, {}, { maxRetries: 1 });
    assert.equal(answer.output_text, said);
  },
  500: () => error("[500]", OpenAI.InternalServerError, 500),
  overloaded: () => error("[overloaded]", OpenAI.InternalServerError, 503),
  "an error inside a stream": async () =>
    assert.equal(await endOf("[fails]"), "response.failed"),
  "a stream that is cut": async () => {
    // In its own dialect a stream passes as it is: it has no end at all.
    const own = place.dialect === "responses";
    const end = own ? "response.output_text.delta" : "response.failed";
    assert.equal(await endOf("[cut]"), end);
  },
};

// ------------------------------------------------------------------------------------------------

// Before a model that says what it likes.
const story = [user("Tell me a long story about the sea, with all the ships and the storms in it.")];
const limit = 16;
const some = (cases, ...names) => Object.fromEntries(names.map((name) => [name, cases[name]]));
const tools = ["parallel tools", "parallel tools, by stream()", "thinking there and back"];
const all = {
  chat,
  responses,
  "chat, tools": some(chat, ...tools, "parallel tools, by runTools"),
  "responses, tools": some(responses, ...tools),
  "chat, plain": {
    whole: async () => {
      const { choices, usage } = await created(story, { max_tokens: limit });
      assert.ok(choices[0].message.content.trim());
      assert.ok(usage.prompt_tokens > 5 && usage.completion_tokens <= limit);
    },
    "by stream()": async () => {
      const { choices } = await gathered(story, { max_tokens: limit });
      assert.ok(choices[0].message.content.trim());
      assert.ok(["length", "stop"].includes(choices[0].finish_reason));
    },
    401: () => chatError("Hello", OpenAI.AuthenticationError, 401, { apiKey: "wrong" }),
  },
  "responses, plain": {
    whole: async () => {
      const { output_text, usage } = await made(story, { max_output_tokens: limit });
      assert.ok(output_text.trim());
      assert.ok(usage.input_tokens > 5 && usage.output_tokens <= limit);
    },
    streamed: async () => {
      const kinds = [];
      const asked = await made(story, { max_output_tokens: limit, stream: true });
      for await (const event of asked) kinds.push(event.type);
      assert.ok(kinds.filter((kind) => kind === "response.output_text.delta").length > 2);
      assert.match(kinds.at(-1), /^response\.(completed|incomplete)$/);
    },
    401: () => error("Hello", OpenAI.AuthenticationError, 401, { apiKey: "wrong" }),
  },
};
if (process.argv.includes("--list")) {
  const names = Object.entries(all).map(([kind, cases]) => [kind, Object.keys(cases)]);
  console.log(JSON.stringify(Object.fromEntries(names)));
} else {
  for (const [name, run] of Object.entries(all[place.kind])) {
    let failed = null;
    try {
      await run();
    } catch (caught) {
      failed = `${caught.constructor.name}: ${caught.message}`.slice(0, 1000);
    }
    console.log(JSON.stringify({ case: name, error: failed }));
  }
}
