"""Makes a thread modest: where others want the processor too, it waits.

Only Linux has a priority for each thread that its owner may lower; elsewhere nothing is done.
"""

import os
import sys
import threading

MODEST_NICE = 10
"""About a tenth of what a thread of usual priority gets, when both want all. Source: sched(7)."""


def be_modest() -> None:
    """Lower the priority of the calling thread, for good."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), MODEST_NICE)
