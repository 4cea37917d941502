"""library/runtime/garbage.py; in a process of its own, since it changes the whole process."""

import subprocess
import sys

PROGRAM = """
import gc, weakref
from library.runtime.garbage import YOUNG_OBJECTS_MAX, set_aside

class Ring:
    def __init__(self): self.own = self

before = weakref.ref(Ring())
set_aside()
assert before() is None, "what was garbage already is not kept for good"
after = weakref.ref(Ring())
some = [[] for _ in range(YOUNG_OBJECTS_MAX // 2)]
assert after() is not None
some += [[] for _ in range(YOUNG_OBJECTS_MAX)]
assert after() is None, "what becomes garbage later is found"
print(gc.get_freeze_count())
"""


def test_what_exists_is_searched_no_more_and_what_comes_later_is() -> None:
    told = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert int(told.stdout) > 1_000
