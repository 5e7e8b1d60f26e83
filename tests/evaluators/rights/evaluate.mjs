// Reads JSON lines of one simulation each, and prints for each: Allowed, ImplicitlyDenied, ExplicitlyDenied, or why the
// request or a policy is no valid one.
import { createInterface } from 'node:readline'
import { runSimulation } from '@cloud-copilot/iam-simulate'

for await (const line of createInterface({ input: process.stdin })) {
  const found = await runSimulation(JSON.parse(line), {})
  console.log(JSON.stringify(found.overallResult ?? found.result ?? found))
}
