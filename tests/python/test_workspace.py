"""The Python module's CPU workspace: aligned, kept from call to call, a thread's own. No torch."""

import ctypes
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.environ["ATTN_SOURCE"], "runtime", "python"))
from attntune._library import workspace

first = workspace(1000)
assert first % 256 == 0
assert workspace(0) == workspace(1000) == first, "made anew for a call that needs no more"
larger = workspace(5 << 20)
ctypes.memset(larger, 1, 5 << 20)
assert workspace(1000) == larger, "the larger one is not kept"

others = []
thread = threading.Thread(target=lambda: others.append(workspace(1000)))
thread.start()
thread.join()
assert others[0] != larger, "two threads share a workspace"
