"""Public reports of this job, as habits: 36 issues and pages about other systems, by their numbers R1 to R36.

Gaps are reports that ask for what Argosy is not. Inputs are small ones of ours.
"""

from __future__ import annotations

from tests.e2e.habits.habit import Habit

CSV_PARTS = """
import os, pathlib, sys
part = pathlib.Path(os.environ["ARGOSY_OUT"], "part.csv")
part.write_bytes([b"a,b\\r\\n1,\\"x\\ny\\"\\r\\n", b"b,a,c\\nz,2,3"][int(sys.argv[1])])
"""
ODD_NAMES = ("Größe & Co.txt", "a+b % # ? * [1].txt", "-dash", ".hidden")
EXCEPTIONS = """
import argosy, threading

class Keyword(Exception):
    def __init__(self, *, why):
        super().__init__(why)

def fail(x):
    if x == 0:
        raise Keyword(why="no record")
    if x == 1:
        error = ValueError("with a lock")
        error.lock = threading.Lock()
        raise error
    return threading.Lock() if x == 2 else x

for each in argosy.map(fail, range(4), batch=1, return_exceptions=True, vcpus=0.25, memory=128):
    print(type(each).__name__, str(each).splitlines()[0])
"""
LEAVING = """
import argosy, itertools, sys, time

def work(x):
    if x == 2:
        sys.exit(0)
    return x * x

found = list(argosy.map(work, range(5), vcpus=0.25, memory=128, return_exceptions=True))
print("TOTAL", sum(each for each in found if isinstance(each, int)), found[2])
endless = argosy.map(abs, itertools.count(), vcpus=0.25, memory=128)
print("FIRST", [next(endless) for _ in range(3)])
endless.close()

def slow(x):
    time.sleep(600 if x else 0)

for each in argosy.map(slow, range(4), batch=1, vcpus=0.25, memory=128):
    raise RuntimeError("a fault of the loop")
"""
LARGE = """
import argosy
with argosy.Executor(vcpus=0.25, memory=512) as pool:
    large = pool.submit(len, bytes(20_000_000))
    print(large.result(120))
"""
QUOTES = """
import sys
print(sys.argv[1:])
"""
AT_THE_END = "import sys; print(1); sys.exit(int(sys.argv[1]) % 3 == 0)"

REPORTS = (
    Habit(
        number="R1, R2",
        source="aws/containers-roadmap#1631, opensupplyhub/open-apparel-registry#336",
        wanted="the size of an array is known to its tasks, and an array may have one task",
        typed="run 'echo n=${index} of ${count}' --size 1 --result stdout --out o; cat o/*/*",
        says=["^n=0 of 1$"],
    ),
    Habit(
        number="R3",
        source="linz/geostore#269",
        wanted="an array that is empty says so before anything starts",
        files={"empty": "", "blank": "\n\n"},
        typed="""
        refuses argosy run true --items empty; refuses argosy run true --items blank
        refuses argosy run true --range 5:5; refuses argosy run true --size 0
        """,
        says=["empty"],
    ),
    Habit(
        number="R4",
        source="CDCgov/mycosnp-nf#39",
        wanted="a list of samples with the line ends of DOS",
        files={"items": "one\r\n\r\ntwo\r\n"},
        typed="argosy run 'echo ${item}' --items items --dry-run",
        says=["^ +- one$", "^ +- two$"],
        never=[r"\\r"],
    ),
    Habit(
        number="R5",
        source="ejh243/BrainFANS#43",
        wanted="a script with the line ends of Windows",
        files={"job.sh": "#!/bin/sh\r\necho hello\r\n"},
        typed="chmod +x job.sh; refuses argosy run job.sh --dry-run",
        says=["has Windows line endings", "^next: sed -i"],
    ),
    Habit(
        number="R6",
        source="theiagen/public_health_bioinformatics#1018",
        wanted="lists that Excel wrote: a byte order mark is no text, and Latin-1 is refused",
        files={"items": b"\xef\xbb\xbfone\r\ntwo\r\n", "latin": "Größe\n".encode("latin-1")},
        typed="argosy run 'echo ${item}' --items items --dry-run; refuses argosy run true --items latin",
        says=["^ +- one$", "UTF-8"],
        never=["\ufeff", "xEF"],
    ),
    Habit(
        number="R7",
        source="skypilot-org/skypilot#755",
        wanted="a link out of the program's folder is refused by its name before anything is uploaded",
        files={"main.py": "print(1)\n"},
        typed="ln -s /etc/hostname out; refuses argosy run main.py",
        says=["out"],
    ),
    Habit(
        number="R8",
        source="skypilot-org/skypilot#1599",
        wanted="a file that .gitignore leaves out and the command names is said, with the rule",
        files={".gitignore": "data\n", "data/x.csv": "1\n", "use.py": "print(open('data/x.csv').read())\n"},
        typed="argosy run use.py data/x.csv --detach; argosy cancel last",
        says=["data/x.csv", r"\.gitignore"],
    ),
    Habit(
        number="R9",
        source="skypilot-org/skypilot#6513, skypilot-org/skypilot#446",
        wanted="what is uploaded is what git would take, nested rules and exceptions included",
        files={
            ".gitignore": "*.log\n!keep.log\n", "sub/.gitignore": "*.bin\n", ".git/info/exclude": "private\n",
            ".git/HEAD": "ref: refs/heads/main\n", "a.log": "", "keep.log": "", "sub/x.bin": "", "sub/y.txt": "",
            "private": "",
            "main.py": "import os\nprint(sorted(os.path.join(d, f) for d, _, n in os.walk('.') for f in n))\n",
        },
        typed="run main.py --result stdout --out o; cat o/*/*",
        says=[r"^\['\./\.gitignore', '\./keep\.log', '\./main\.py', '\./sub/\.gitignore', '\./sub/y\.txt'\]$"],
        is_deep=True,
    ),
    Habit(
        number="R10",
        source="MCPJam/inspector#2509",
        wanted="a broken link and a pipe in the folder are refused by name",
        files={"a/main.py": "", "b/main.py": ""},
        typed="""
        ln -s /nope a/latest; mkfifo b/queue
        (cd a; refuses argosy run main.py); (cd b; refuses argosy run main.py)
        """,
        says=["latest", "queue"],
    ),
    Habit(
        number="R11",
        source="nextflow-io/nextflow#717, nextflow-io/nextflow#3121, nextflow-io/nextflow#822",
        wanted="scripts, folders and results with blanks, brackets and umlauts in their names",
        files={
            "My Project (v2)/Größe & Co's 1.py": f"import os\nfor name in {ODD_NAMES!r}:\n"
            "    open(os.path.join(os.environ['ARGOSY_OUT'], name), 'w').write(name)\n"
        },
        typed="cd 'My Project (v2)'; run \"Größe & Co's 1.py\" --out ../o; cd ../o; find . -type f",
        says=["Größe & Co.txt$", r"a\+b % # \? \* \[1\]\.txt$", "/-dash$", r"/\.hidden$"],
        is_deep=True,
    ),
    Habit(
        number="R12",
        source="variants of the same",
        wanted="arguments reach the program as they are, and a shell runs nothing of them",
        files={"show.py": QUOTES},
        typed="""run show.py --result stdout --out o -- "a b" '$(id)' "it's" '"q"' '🎈' --help; cat o/*/*""",
        says=[r"""^\['a b', '\$\(id\)', "it's", '"q"', '🎈', '--help'\]$"""],
        is_deep=True,
    ),
    Habit(
        number="R13",
        source="a variant of cloudnull/turbolift#69",
        wanted="a link that leads nowhere is left out of a result, with a line, and the rest is kept",
        typed="""
        run 'echo precious > "$ARGOSY_OUT/result.txt"; ln -s /nope "$ARGOSY_OUT/latest"' --out o
        find o -name result.txt -exec cat {} +; argosy logs last
        """,
        says=["^precious$", "latest"],
        is_deep=True,
    ),
    Habit(
        number="R14",
        source="Netflix/metaflow#1482, Netflix/metaflow#977, ASFHyP3/hyp3#3041, awslabs/amazon-neptune-tools#238",
        wanted="an item of more characters than ECS takes in overrides reaches its program",
        files={"items": "s3://bucket/product/" * 450 + "\nshort\n", "size.py": "import sys\nprint(len(sys.argv[1]))\n"},
        typed="run size.py '${item}' --items items --result stdout --out o; cat o/*/*",
        says=["^9000$", "^5$"],
    ),
    Habit(
        number="R17",
        source="broadinstitute/cromwell#5003, wri/gfw-data-api#223",
        wanted="status names the signal behind exit 137 and 143, and keeps the two apart",
        files={"items": "kill -9 $$\nkill -TERM $$\nexit 137\n"},
        typed="refuses run 'sh -c \"${item}\"' --items items --attempts 1 --result none; argosy status last",
        says=["SIGKILL", "exit 143"],
        is_deep=True,
    ),
    Habit(
        number="R18",
        source="henriqueribeiro/cromwell#40",
        wanted="rules about exit codes are texts, and a number is refused with what to write",
        files={
            "rules.yaml": "version: 1\nname: rules\nrun: exit 137\nresult: none\narray: {size: 1}\n"
            "retryStrategy: {attempts: 3, evaluateOnExit: [{onExitCode: 3, action: EXIT}]}\n"
        },
        typed="""
        refuses argosy validate rules.yaml
        sed -i 's/: 3, action/: "1*", action/' rules.yaml; argosy validate rules.yaml
        """,
        says=["onExitCode.*text", "quotes", "valid"],
    ),
    Habit(
        number="R19",
        source="epam/cloud-pipeline#3938",
        wanted="what a failed attempt wrote is no part of the result of the next",
        typed="""
        run 'echo x > "$ARGOSY_OUT/of-$ARGOSY_TASK_ATTEMPT"; test "$ARGOSY_TASK_ATTEMPT" = 2' --attempts 2 --out o
        find o -type f
        """,
        says=["of-2$"],
        never=["of-1"],
        is_deep=True,
    ),
    Habit(
        number="R20",
        source="a variant without a source",
        wanted="logs of a hundred thousand lines, of one long line and of bytes that are no text are kept",
        typed=r"""
        printf 'seq 1 100000; head -c 300000 /dev/zero|tr "\\0" x; printf "\\nno\\377text\\n"; echo last words' > job.sh
        run sh job.sh --result none
        argosy logs last > log; grep -ac '\] [0-9]*$' log; tail -n 1 log; grep -a 'no.text' log
        """,
        says=["^100000$", "last words$", "no.text$"],
        is_deep=True,
    ),
    Habit(
        number="R21",
        source="nrdg/cloudknot#134",
        wanted="results of the tasks that succeeded, where others failed",
        files={"third.py": AT_THE_END},
        typed="""
        refuses run third.py '${index}' --size 6 --attempts 1 --result stdout
        argosy status last; argosy results last --partial --out o; find o -name 'part*' | wc -l
        """,
        says=["PARTIAL", "^4$"],
        is_deep=True,
    ),
    Habit(
        number="R24, R26",
        source="ray-project/ray#20830, ray-project/ray#36893, dask/dask#7412",
        wanted="exceptions and results that cannot be pickled come back as a sentence",
        files={"program.py": EXCEPTIONS},
        typed="script program.py",
        says=["^RemoteError Keyword: no record$", "^RemoteError ValueError: with a lock$",
              "^TypeError .*lock", "^int 3$"],
        is_deep=True,
    ),
    Habit(
        number="R25, R27, R28",
        source="dask/distributed#301, dask/distributed#5958, ray-project/ray#40358, python/cpython#74028,"
        " python/cpython#74508, skyplane-project/skyplane#63",
        wanted="sys.exit of a call ends no caller, endless items stream, and leaving the loop cancels",
        files={"program.py": LEAVING},
        typed="refuses script program.py; refuses argosy watch last",
        says=["^TOTAL 26 SystemExit: 0$", r"^FIRST \[0, 1, 2\]$", "^RuntimeError: a fault", "CANCELLED"],
        is_deep=True,
    ),
    Habit(
        number="R29",
        source="a variant without a source",
        wanted="large arguments",
        files={"program.py": LARGE},
        typed="script program.py",
        says=["^20000000$"],
        is_deep=True,
    ),
    Habit(
        number="R30, R31",
        source="hashicorp/nomad#3392, hashicorp/nomad#5410, hashicorp/nomad#7289,"
        " Steve-Mcl/node-red-contrib-cron-plus#108, kelektiv/node-cron#181, lholden/job_scheduler#29",
        wanted="a five-field cron expression is refused, and coming times show that AWS's 1-5 begins on Sunday",
        files={"one.yaml": "version: 1\nname: one\nrun: 'true'\nresult: none\narray: {size: 1}\n"},
        typed="""
        refuses argosy schedule create five --spec one.yaml --cron '30 2 * * *'
        argosy schedule create week --spec one.yaml --cron '0 3 ? * 1-5 *'; argosy schedule delete week
        """,
        says=["has six fields", "^next: Mon .*Thu .*Sun "],
        never=["Fri 2"],
    ),
    Habit(
        number="R33",
        source="AWS, \"Jobs stuck in RUNNABLE\"",
        wanted="what no instance can run is refused with the largest there is",
        typed="""
        refuses argosy run true --vcpus 500; refuses argosy run true --memory 1000000
        refuses argosy run true --gpus 1 --gpu-model H1000
        """,
        says=["largest", "H1000"],
    ),
    Habit(
        number="R35",
        source="localstack/localstack#8066, boto/boto3#3179",
        wanted="no proxy stands between this machine and its local mode",
        typed="unset NO_PROXY; HTTP_PROXY=http://127.0.0.1:1 http_proxy=http://127.0.0.1:1 argosy runs",
        says=["RUN|no runs"],
    ),
    Habit(
        number="R36",
        source="Slurm, aftercorr",
        wanted="dependencies task by task need equal sizes, which is said before the first run starts",
        files={
            "a.yaml": "version: 1\nname: stage-a\nrun: 'true'\nresult: none\narray: {size: 3}\n",
            "c.yaml": "version: 1\nname: stage-c\nrun: 'true'\nresult: none\n"
            "dependsOn: [{run: stage-a, type: N_TO_N}]\narray: {size: 4}\n",
        },
        typed="refuses argosy submit a.yaml c.yaml --detach; argosy runs",
        says=["N_TO_N needs as many tasks in both runs: stage-a has 3 tasks and this run 4", "nothing was submitted"],
        never=["^stage-a-"],
    ),
)  # fmt: skip
