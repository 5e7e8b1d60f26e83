"""A run that reads what another run wrote, and starts when that one has succeeded."""

import argosy

prepare = {
    "version": 1,
    "name": "prepare",
    "run": "seq ${start} $((${end} - 1)) | sed 's/.*/{\"n\": &}/'",
    "result": "stdout",
    "array": {"range": "0:12", "shardSize": 6},
}
count = {
    "version": 1,
    "name": "count",
    "run": "cat $(find $ARGOSY_IN -name '*.jsonl') | wc -l | sed 's/.*/{\"rows\": &}/'",
    "result": "stdout",
    "inputs": ["${dependency.prepare.output}parts/"],
    "dependsOn": [{"run": "prepare"}],
    "array": {"size": 1},
}

client = argosy.Client()
client.submit(prepare)
run = client.submit(count).wait(timeout=300)
print(next(iter(run.rows())))
