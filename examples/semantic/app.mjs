// A help desk that asks a slow model once for questions that are alike. `npm start`
import { setTimeout as wait } from "node:timers/promises";
import { XCache } from "xcache";
import { SemanticCache } from "xcache/vector";

// Stands for a language model: slow, and paid by the question.
async function askModel(question) {
  await wait(300);
  return question.includes("password") ? "Follow the link on the login page." : "Write to support.";
}

const cache = new XCache({ kvUrl: process.env.XCACHE_KV_URL ?? "memory://" });
// Compares spelling. With `embed: (text) => vector` of an embedding model it compares meaning.
const answers = new SemanticCache({ cache, namespace: "help-desk", threshold: 0.8 });

async function ask(question) {
  const { loads } = answers.getStats();
  const started = performance.now();
  const answer = await answers.getOrSet(question, () => askModel(question), { ttl: 3_600, tags: ["help"] });
  const ms = `${(performance.now() - started).toFixed(0)} ms`;
  const source = answers.getStats().loads > loads ? "model" : "cache";
  console.log(`${question.padEnd(32)} ${source}  ${ms.padStart(6)}  ${answer}`);
}

await ask("How do I reset my password?");
await ask("how do i reset my password");
await ask("How can I reset the password?");
await ask("How do I delete my account?");
await answers.invalidateTags("help");
console.log("The help pages were rewritten.");
await ask("How can I reset the password?");

const { likeHits, loads } = answers.getStats();
console.log(`5 questions, ${loads} calls of the model, ${likeHits} answers to a question that was alike`);
await answers.clear();
answers.close();
await cache.disconnect();
