# Data that cannot be written are an error, whatever became of the rest.
try bash -c 'attntune --help >/dev/full'
try bash -c 'attntune space >/dev/full'
try bash -c 'attntune space --format jsonl >&-'
mkfifo pipe
exec 3<>pipe 4>pipe 3<&- # a pipe that nobody reads any more
try bash -c 'attntune space >&4'
