"""The rows of all tasks in one pandas DataFrame; needs argosy[frame]."""

import argosy

squares = {
    "version": 1,
    "name": "frame",
    "run": ["python", "-c", 'for n in range(${start}, ${end}): print(\'{"n": %d, "square": %d}\' % (n, n * n))'],
    "result": "stdout",
    "array": {"range": "0:40", "shardSize": 20},
}

run = argosy.Client().submit(squares).wait(timeout=300)
frame = run.dataframe()
print(f"{len(frame)} rows, the squares add up to {frame['square'].sum()}")
