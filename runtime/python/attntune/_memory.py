"""Memory of calls on the CPU. What is fresh from the system costs a page fault for each page that is
touched, which can take as long as the kernel does: so workspaces are kept, and large pages wished
for."""

import ctypes
import functools
import mmap
import threading

_space = threading.local()
_HUGE_PAGE = 2 << 20
FRESH = 32 << 20  # memory of this size comes from the system anew each time (glibc)


def workspace(size):
    """Address of `size` bytes for a call. Each thread keeps its largest one until it ends."""
    kept = getattr(_space, "memory", None)
    if kept is None or len(kept) < size:
        kept = mmap.mmap(-1, max(1, -(-size // _HUGE_PAGE)) * _HUGE_PAGE,
                         flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        _space.memory = kept
        _space.address = ctypes.addressof(ctypes.c_char.from_buffer(kept))
        wish_huge_pages(_space.address, len(kept))
    return _space.address


@functools.cache
def _madvise():
    call = ctypes.CDLL(None).madvise
    call.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return call


def wish_huge_pages(address, size):
    """Has memory that nobody has touched come in huge pages where these fit, if the system can."""
    begin = -(-address // _HUGE_PAGE) * _HUGE_PAGE
    end = (address + size) // _HUGE_PAGE * _HUGE_PAGE
    if begin < end and hasattr(mmap, "MADV_HUGEPAGE"):
        _madvise()(begin, end - begin, mmap.MADV_HUGEPAGE)
