// Uses the types that openapi-typescript made, through openapi-fetch.
import createClient from "openapi-fetch";
import type { paths } from "./api";

const api = createClient<paths>({ baseUrl: process.argv[2], headers: { Authorization: `Bearer ${process.argv[3]}` } });
const draft = {
  name: "made by openapi-typescript",
  type: "http",
  config: { url: "http://127.0.0.1:1/hook" },
  schedule: { words: "every day at 9am" },
};

function must<T>(found: T | undefined, error: unknown): T {
  if (found === undefined) throw new Error(JSON.stringify(error));
  return found;
}

function check(holds: boolean, why: string): void {
  if (!holds) throw new Error(why);
}

async function main(): Promise<void> {
  const made = await api.POST("/api/v1/jobs", { body: draft });
  const job = must(made.data, made.error);
  if (!("id" in job)) throw new Error("the answer is one of a dry run");
  const listed = await api.GET("/api/v1/jobs", { params: { query: { count: true } } });
  const page = must(listed.data, listed.error);
  check(page.items.some((each) => each.id === job.id), "not listed");
  const started = await api.POST("/api/v1/jobs/{job_id}/run", { params: { path: { job_id: job.id } }, body: {} });
  const run = must(started.data, started.error);
  if (!("id" in run)) throw new Error("the answer is one of a dry run");
  const read = await api.GET("/api/v1/runs/{run_id}", { params: { path: { run_id: run.id } } });
  check(must(read.data, read.error).job_id === job.id, "another job's run");
  const refused = await api.POST("/api/v1/jobs", { body: { ...draft, name: "" } });
  check(refused.error?.code === "invalid", "an empty name was taken");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
