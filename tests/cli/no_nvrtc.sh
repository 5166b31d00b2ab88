# Where NVRTC and nvJitLink are missing, or are not what they seem, the advice is one that works on
# Debian too: pip3 refuses to install but into a virtual environment or a folder.
echo 'int nothing;' >empty.c
${CC:-cc} -shared -fPIC -o libnvrtc.so.13 empty.c && cp libnvrtc.so.13 libnvJitLink.so.13 ||
    skip "the compiler makes no shared library"
LD_LIBRARY_PATH=$PWD attntune devices --format csv | grep '^cuda,.*pip'
