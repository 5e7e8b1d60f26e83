"""The twelve programs of a new user, as habits, by their letters; each is small here.

Three have tests that type their guide's page, to which `findings` points: a (own-program.md), and the longer forms of
k (services.md) and l (sharing).
"""

from __future__ import annotations

from tests.e2e.habits.habit import Habit

PI = """
import json, random, sys
chance = random.Random(int(sys.argv[1]))
inside = sum(chance.random() ** 2 + chance.random() ** 2 < 1 for _ in range(1_000))
print(json.dumps({"seed": int(sys.argv[1]), "pi": 4 * inside / 1_000}))
"""
SWEEP = """
import csv, os, sys
with open(os.environ["ARGOSY_OUT"] + "/part.csv", "w") as part:
    csv.writer(part).writerows([["rate", "loss"], [sys.argv[1], float(sys.argv[1]) * int(sys.argv[2])]])
"""
FAILING = """
import sys
n = int(sys.argv[1])
if n in (3, 7, 11): raise SystemExit(f"bad record {n}")
print("old", n)
"""
LONG = """
import os, pathlib, time
state = pathlib.Path(os.environ["ARGOSY_CHECKPOINT"], "step")
begin = int(state.read_text()) if state.exists() else 0
print("begins at", begin, flush=True)
if begin == 0:
    time.sleep(1.5)  # so that its use is measured
    state.write_text("3")
    (state.parent / ".commit").touch()
    while (state.parent / ".commit").exists():
        time.sleep(0.02)
    print("saved", flush=True)
    time.sleep(600)
"""
STAGE = (
    "version: 1\nname: {name}\nrun: {run}\nresult: stdout\narray: {{size: {size}}}\n"
    "resources: {{vcpus: 0.25, memory: 128}}\n"
)
SERVICE = """
version: 1
kind: service
name: api
run: exec python3 -m http.server "$ARGOSY_PORT_8000"
result: none
resources: {vcpus: 0.25, memory: 128}
container:
  ports: [{container: 8000}]
  health: {command: [CMD-SHELL, "true"], intervalSeconds: 5}
service: {desired: 2, update: {healthySeconds: 1}}
"""
PROGRAMS = (
    Habit(
        number="b",
        wanted="Monte-Carlo over seeds, merged into one file",
        files={"pi.py": PI},
        typed="run pi.py '${index}' --size 24 --result stdout --merge pi.jsonl; wc -l pi.jsonl; tail -n 1 pi.jsonl",
        says=["^24 pi.jsonl$", '^{"seed": 23, '],
        is_deep=True,
    ),
    Habit(
        number="c",
        wanted="a parameter sweep from a CSV file, by its header, into one table",
        files={"sweep.py": SWEEP, "grid.csv": "rate,depth\n0.1,4\n0.01,8\n"},
        typed="run sweep.py '${item.rate}' '${item.depth}' --items grid.csv --merge sweep.csv; cat sweep.csv",
        says=["^rate,loss\r?$", r"^0\.1,0\.4", r"^0\.01,0\.08"],
        is_deep=True,
    ),
    Habit(
        number="d",
        wanted="a shell script with an executable beside it and a file as its input",
        files={
            "go.sh": '#!/bin/sh\nset -e\n./count "$ARGOSY_IN"/*\n',
            "count": '#!/bin/sh\nwc -c < "$1"\n',
            "clip": "12345",
        },
        typed="""
        chmod +x go.sh count; mkdir work; mv go.sh count work; cd work
        run ./go.sh --input ../clip --result stdout --out o; cat o/*/*
        """,
        says=["^ *5$"],
        is_deep=True,
    ),
    Habit(
        number="e",
        wanted="a task for each image of a folder, and for two images",
        files={f"images/{number}.jpg": str(number) * number for number in range(1, 6)},
        typed="""
        mkdir work; cd work; run 'cat "$ARGOSY_IN"/* | wc -c' --input-each '../images/*.jpg' --result stdout --out o
        run 'cat "$ARGOSY_IN"/* | wc -c' --input-each '../images/*.jpg' --shard-size 2 --result stdout --out p
        cat o/*/* p/*/* | xargs
        """,
        says=["^1 2 3 4 5 3 7 5$"],
        is_deep=True,
    ),
    Habit(
        number="f",
        wanted="fix the program and run what failed alone",
        files={"f.py": FAILING},
        typed="""
        refuses run f.py '${index}' --size 12 --attempts 1 --result stdout
        sed -i '/bad record/d; s/old/new/' f.py
        argosy retry last --failed --with-program .; argosy watch last
        argosy results last --out o; cat o/*/* | xargs
        """,
        says=["3 tasks of 12", "old 0 old 1 old 2 new 3 old 4 old 5 old 6 new 7 old 8 old 9 old 10 new 11$"],
        is_deep=True,
    ),
    Habit(
        number="g",
        wanted="a configuration and a large folder of data, of which an edit sends the difference",
        files={
            "use.py": "import os\nprint(len(os.listdir(os.environ['ARGOSY_IN'])))\n",
            "data/large.bin": bytes(range(256)) * 20_000,
        },
        typed="""
        mkdir work; mv use.py work; cd work; run use.py --input ../data --result stdout --out ../one 2>&1
        printf x >> ../data/large.bin; run use.py --input ../data --result stdout --out ../two 2>&1; cat ../two/*/*
        """,
        says=["uploaded 4.9 MiB", r"uploaded 1\.\d MiB", "^1$"],
        is_deep=True,
    ),
    Habit(
        number="h",
        wanted="a long program that is interrupted goes on from its checkpoint",
        files={
            "long.py": LONG,
            "long.yaml": "version: 1\nname: long\nrun: [python, long.py]\nworkdir: .\nresult: none\narray: {size: 1}\n"
            "checkpoint: {everySeconds: 60}\nresources: {vcpus: 0.25, memory: 128}\n",
        },
        typed="""
        argosy submit long.yaml --detach; until argosy logs last | grep saved; do :; done
        argosy interrupt last --warn 1; argosy watch last; argosy logs last; argosy status last
        """,
        says=["begins at 3$", "SUCCEEDED", r"attempts? used .* of 0\.25 vCPUs, .* and at most [0-9]+ of 128 MiB"],
        is_deep=True,
    ),
    Habit(
        number="i",
        wanted="three runs one after the other, task by task",
        files={
            "1.yaml": STAGE.format(name="first", run="echo first", size=3),
            "2.yaml": STAGE.format(name="second", run="echo second", size=3)
            + "dependsOn: [{run: first, type: N_TO_N}]\n",
            "3.yaml": STAGE.format(name="third", run="echo third", size=1) + "dependsOn: [{run: second}]\n",
        },
        typed="argosy submit 1.yaml 2.yaml 3.yaml --detach; argosy watch third; argosy runs",
        says=["third.*SUCCEEDED", "second.*SUCCEEDED"],
        is_deep=True,
    ),
    Habit(
        number="j",
        wanted="a schedule",
        files={"nightly.yaml": STAGE.format(name="nightly", run="echo night", size=1)},
        typed="""
        argosy schedule create nightly --spec nightly.yaml --cron "0 3 * * ? *" --zone Europe/Berlin
        argosy schedule run-now nightly; argosy schedule show nightly; argosy schedule delete nightly
        """,
        says=["nightly-", "03:00"],
        is_deep=True,
    ),
    Habit(
        number="k",
        wanted="a service with a health check and an address",
        files={"api.yaml": SERVICE},
        typed="""
        argosy env create api.yaml; argosy env deploy api --wait; argosy env endpoints api; argosy env delete api
        refuses argosy submit api.yaml
        """,
        says=["HEALTHY|healthy", "argosy env create"],
        is_deep=True,
    ),
    Habit(
        number="l",
        wanted="two queues, of which the short run does not wait for the long one",
        files={
            "queues.yaml": "version: 1\nqueues:\n  large: {weight: 1}\n  small: {weight: 3}\n",
            "large.yaml": STAGE.format(name="large", run="echo large", size=12) + "queue: large\n",
            "small.yaml": STAGE.format(name="small", run="echo small", size=2) + "queue: small\n",
        },
        typed="""
        argosy queues apply queues.yaml; argosy submit large.yaml small.yaml --detach
        argosy watch small; argosy watch large; argosy queues
        """,
        says=["small", "large"],
        is_deep=True,
    ),
)  # fmt: skip
