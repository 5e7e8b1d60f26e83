"""A run of the same spec every night, and one now to see that it works."""

import argosy

report = {
    "version": 1,
    "name": "report",
    "run": 'date -u +\'{"made": "%F"}\'',
    "result": "stdout",
    "array": {"size": 1},
}

client = argosy.Client()
made = client.schedules.create("report", report, "cron(0 3 * * ? *)", zone="Europe/Berlin", overlap="queue")
print("next:", made.next_times[0])
run = client.schedules.run_now("report").wait(timeout=300)
print(run.status, list(run.rows()))
client.schedules.delete("report")  # without this line it would run every night
