import os
import subprocess
import sys

import pytest

PEAK = """
import threading
from library.runtime.allocator import give_back, limit_heaps

limit_heaps()

def resident_mb():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096 / 2**20

kept = []

def work():
    held = [bytes(4_000) for _ in range(2_500)]
    kept.append(held[-1])

before = resident_mb()
threads = [threading.Thread(target=work) for _ in range(8)]
for one in threads:
    one.start()
for one in threads:
    one.join()
give_back()
print(resident_mb() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's allocator")
def test_what_threads_needed_at_their_peak_goes_back_to_the_system() -> None:
    # Python's own allocator is out of the way, so that all goes to glibc.
    environment = os.environ | {"PYTHONMALLOC": "malloc"}
    done = subprocess.run(
        [sys.executable, "-c", PEAK], env=environment, capture_output=True, text=True, check=True
    )
    assert float(done.stdout) < 5, "80 MB were allocated and freed"
