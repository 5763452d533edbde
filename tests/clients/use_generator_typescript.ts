// Uses the client that openapi-generator made with typescript-fetch.
import { Configuration, JobsApi, RunsApi } from "./index";

async function main(): Promise<void> {
  const config = new Configuration({ basePath: process.argv[2], accessToken: process.argv[3] });
  const jobs = new JobsApi(config);
  const job = await jobs.createJob({
    jobIn: {
      name: "made by typescript-fetch",
      type: "http",
      config: { url: "http://127.0.0.1:1/hook" },
      schedule: { words: "every day at 9am" },
    },
  });
  const page = await jobs.listJobs({ count: true });
  if (!page.items.some((each) => each.id === job.id)) throw new Error("not listed");
  const run = await jobs.runJob({ jobId: job.id, runIn: {} });
  const read = await new RunsApi(config).getRun({ runId: run.id });
  if (read.jobId !== job.id) throw new Error("another job's run");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
