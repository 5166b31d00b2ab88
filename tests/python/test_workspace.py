"""The Python module's memory on the CPU. No torch.

Workspaces are aligned, kept from call to call, a thread's own; huge pages are wished for inside what
was given out, and nowhere else.
"""

import ctypes
import mmap
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.environ["ATTN_SOURCE"], "runtime", "python"))
from attntune._memory import wish_huge_pages, workspace

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


def wished(address):
    """Whether the mapping of an address is one that huge pages were wished for."""
    inside = False
    with open("/proc/self/smaps", encoding="ascii") as smaps:
        for line in smaps:
            word = line.split()[0]
            if "-" in word and ":" not in word:
                low, high = (int(x, 16) for x in word.split("-"))
                inside = low <= address < high
            elif inside and word == "VmFlags:":
                return "hg" in line.split()
    return False


HUGE = 2 << 20
memory = mmap.mmap(-1, 4 * HUGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
first = -(-start // HUGE) * HUGE
wish_huge_pages(first + 4096, 2 * HUGE)  # holds one whole huge page: the second
if os.path.exists("/sys/kernel/mm/transparent_hugepage"):
    assert wished(first + HUGE) and wished(first + 2 * HUGE - 1)
    assert not wished(first + HUGE - 1) and not wished(first + 2 * HUGE), "more than was given out"
wish_huge_pages(first, 100)  # none fits
