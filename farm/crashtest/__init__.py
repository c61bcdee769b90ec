"""What ``uneven crashtest`` runs: a small job that is killed wherever it touches the disk, and resumed.

points.py    crash points as data, and the log of file operations
probe.py     in every process of the job: logs its file operations, and kills at the chosen one
powercut.py  what is left on disk of a log's operations if whatever wasn't synced is lost
trial.py     one crash and one resume, and what must hold afterwards
campaign.py  all of them: recording run, crash points, random kills
"""
