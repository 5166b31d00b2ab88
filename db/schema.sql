-- The attntune database, version 1. One file; see db.h for its rules.
-- Hashes are 32 hex digits (core/hash.h). Times are nanoseconds, moments are Unix seconds.

CREATE TABLE device (
    id       INTEGER PRIMARY KEY,
    hash     TEXT NOT NULL UNIQUE,   -- of backend and identity
    backend  TEXT NOT NULL,          -- 'cpu', 'cuda'
    name     TEXT NOT NULL,
    arch     TEXT NOT NULL,          -- 'cpu:avx512', 'sm_90a': same-architecture look-ups
    identity TEXT NOT NULL,
    info     TEXT NOT NULL           -- attn_device_print, without lock, environment and ordinal
) STRICT;

CREATE TABLE toolchain (
    id       INTEGER PRIMARY KEY,
    identity TEXT NOT NULL UNIQUE    -- 'gcc 12.2.0 x86_64-linux-gnu', 'nvrtc 13.0'
) STRICT;

CREATE TABLE problem (
    id    INTEGER PRIMARY KEY,
    hash  TEXT NOT NULL UNIQUE,
    text  TEXT NOT NULL UNIQUE,      -- canonical: attn_problem_print
    class TEXT NOT NULL              -- attn_class_print: what a kernel is compiled for
) STRICT;
CREATE INDEX problem_class ON problem (class);

CREATE TABLE variant (
    id          INTEGER PRIMARY KEY,
    hash        TEXT NOT NULL UNIQUE,  -- family, configuration, class, source, launch, options, ABI
    family      TEXT NOT NULL,
    config      TEXT NOT NULL,         -- every parameter: 'NV=4 MR=4'
    class       TEXT NOT NULL,         -- with specialised fields
    language    TEXT NOT NULL,
    launch      TEXT NOT NULL,         -- launch.h text, limits included
    options     TEXT NOT NULL,
    source_hash TEXT NOT NULL,         -- of the family's files when it was last rendered
    abi         INTEGER NOT NULL
) STRICT;

CREATE TABLE build (
    id           INTEGER PRIMARY KEY,
    hash         TEXT NOT NULL UNIQUE, -- variant, toolchain, target: the key the binary exports
    variant_id   INTEGER NOT NULL REFERENCES variant (id) ON DELETE CASCADE,
    toolchain_id INTEGER NOT NULL REFERENCES toolchain (id),
    target       TEXT NOT NULL,
    registers    INTEGER,              -- NULL: not known
    spills       INTEGER,
    smem         INTEGER,
    binary_hash  TEXT,                 -- of the blob; a mismatch is never loaded
    binary       BLOB,                 -- NULL: not kept
    CHECK ((binary IS NULL) = (binary_hash IS NULL))
) STRICT;
CREATE INDEX build_variant ON build (variant_id);
CREATE INDEX build_kept ON build (id) WHERE binary_hash IS NOT NULL;

-- A run of attntune that writes. Host to started tell whether it still lives: db_session.c.
CREATE TABLE session (
    id        INTEGER PRIMARY KEY,
    uid       TEXT NOT NULL UNIQUE,    -- random 128 bits, as a trial's id
    host      TEXT NOT NULL,
    boot_id   TEXT NOT NULL,
    pid_space TEXT NOT NULL,           -- containers of one boot have process numbers of their own
    pid       INTEGER NOT NULL,
    started   INTEGER NOT NULL,        -- process start time, clock ticks since boot
    begun     INTEGER NOT NULL,
    seen      INTEGER NOT NULL,        -- at every claim and end
    ended     INTEGER,                 -- NULL: running, or dead
    version   TEXT NOT NULL,
    command   TEXT NOT NULL
) STRICT;

-- One build on one problem on one device in one environment. Failures are trials too.
CREATE TABLE trial (
    id          TEXT PRIMARY KEY CHECK (length(id) = 32), -- random, so that files can be merged
    build_id    INTEGER NOT NULL REFERENCES build (id) ON DELETE CASCADE,
    problem_id  INTEGER NOT NULL REFERENCES problem (id),
    device_id   INTEGER NOT NULL REFERENCES device (id),
    session_id  INTEGER REFERENCES session (id) ON DELETE SET NULL,
    environment TEXT NOT NULL,         -- driver and the like: attn_device_info.environment
    threads     INTEGER NOT NULL,      -- CPU threads; 0 on GPUs
    mode        TEXT NOT NULL CHECK (mode IN ('cold', 'hot')),
    outcome     TEXT NOT NULL CHECK (outcome IN ('running', 'ok', 'wrong', 'compile_error',
                    'load_error', 'launch_error', 'crash', 'timeout', 'oom', 'pruned', 'lost')),
    error       TEXT NOT NULL DEFAULT '',
    begun       INTEGER NOT NULL,      -- when a worker last got it; 0: it only waits for one
    ended       INTEGER,
    median_ns   REAL,                  -- of the racing samples; ok only
    final_ns    REAL,                  -- median of the interleaved final rounds; finalists only
    band        REAL,                  -- relative noise band of the finals
    default_ns  REAL,                  -- the family default's final_ns of the same rounds
    searched_s  REAL,                  -- winner only: seconds of search behind the decision
    exhausted   INTEGER NOT NULL DEFAULT 0, -- winner only: nothing was left untried
    rank        INTEGER,               -- 1: the winner of its (problem, device, threads, mode)
    throttled   INTEGER NOT NULL DEFAULT 0,
    clock_mhz   REAL,
    power_w     REAL,
    temperature_c REAL,
    error_max   REAL,                  -- worst e_head seen in verification
    CHECK ((outcome = 'running') = (ended IS NULL)),
    CHECK (rank IS NULL OR (rank > 0 AND outcome = 'ok'))
) STRICT, WITHOUT ROWID;

-- The claim between processes: one runs it at a time.
CREATE UNIQUE INDEX trial_running ON trial
    (build_id, problem_id, device_id, threads, mode, environment) WHERE outcome = 'running';
-- One winner.
CREATE UNIQUE INDEX trial_winner ON trial (problem_id, device_id, threads, mode) WHERE rank = 1;
CREATE INDEX trial_ranked ON trial (rank, problem_id) WHERE rank IS NOT NULL;
CREATE INDEX trial_problem ON trial (problem_id, device_id);
CREATE INDEX trial_build ON trial (build_id);
CREATE INDEX trial_session ON trial (session_id);

-- Single samples, so that a choice can be looked at again without measuring.
CREATE TABLE sample (
    trial_id TEXT NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
    phase    TEXT NOT NULL CHECK (phase IN ('race', 'final', 'alone')),
    n        INTEGER NOT NULL,         -- order within the phase; final: the round
    ns       REAL NOT NULL,            -- of one launch
    PRIMARY KEY (trial_id, phase, n)
) STRICT, WITHOUT ROWID;
