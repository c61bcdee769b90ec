"""The logs of a worker process: one per attempt, whatever writes to descriptor 1 or 2."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

WRITER = """
import os, sys
from pathlib import Path
from farm.worker.log import FileLog

log = FileLog(Path(sys.argv[1]), "w1")
log.begin("c12#3@e2")
log.line("first part")
os.write(2, b"an encoder complains\\n")
print("a print")
log.end()
log.line("between claims \\udce4")
"""


def test_each_attempt_has_a_log(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", WRITER, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("", "")
    attempt = (tmp_path / "w1-c12.3.e2.log").read_text()
    assert "first part\n" in attempt and "an encoder complains\n" in attempt and "a print\n" in attempt
    assert "between claims \\udce4\n" in (tmp_path / "w1.log").read_text()
