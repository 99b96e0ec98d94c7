// Answers each line, {"query": …, "k": …}, with the passages that share the most words with the query.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const words = (text) => new Set(text.toLowerCase().match(/[a-z]{4,}/g));
const lines = readFileSync("handbook/corpus.jsonl", "utf8").trim().split("\n");
const passages = lines.map((line) => JSON.parse(line)).map(({ doc_id, contents }) => [doc_id, words(contents)]);
for await (const line of createInterface({ input: process.stdin })) {
  const { query, k } = JSON.parse(line);
  const score = (has) => [...words(query)].filter((word) => has.has(word)).length;
  const results = passages.map(([id, has]) => ({ id, score: score(has) })).sort((a, b) => b.score - a.score);
  console.log(JSON.stringify(results.slice(0, k)));
}
