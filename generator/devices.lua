-- devices.lua: what backends report for devices that need not be here, so that every family can be
-- rendered, listed, linted and compiled for them (`--arch sm_90a`).
--
-- Properties are integers; one that is left out reads as 0. Sizes are bytes, and of one SM or
-- core where they are not of the whole chip (l2 on GPUs, l3). Where an architecture has several
-- chips, the row is the one named.

local KiB, MiB = 1024, 1024 * 1024

-- gcc, clang: 1 where that compiler is found.
local function cpu(arch, name, props)
  props.gcc, props.clang = 1, 1
  props.threads = 8
  props.l1d, props.l2, props.l3 = props.l1d or 32 * KiB, props.l2 or 1 * MiB, 32 * MiB
  return { backend = "cpu", arch = "cpu:" .. arch, name = name, props = props }
end

-- cc: compute capability, 90 for 9.0. smem_optin: most shared memory of a block.
local function gpu(arch, name, props)
  props.warp = 32
  props.regs_per_sm = 65536
  props.threads_per_block = 1024
  return { backend = "cuda", arch = arch, name = name, props = props }
end

return {
  cpu("generic", "any x86-64 CPU", { x86_64 = 1 }),
  cpu("avx2", "x86-64 with AVX2 and FMA", { x86_64 = 1, avx2 = 1, fma = 1, f16c = 1 }),
  cpu("avx512", "x86-64 with AVX-512, as Skylake-SP and Zen 4", {
    x86_64 = 1, avx2 = 1, fma = 1, f16c = 1,
    avx512f = 1, avx512bw = 1, avx512vl = 1, avx512dq = 1,
  }),
  cpu("avx512_amx", "x86-64 with AVX-512 and AMX, as Sapphire Rapids", {
    x86_64 = 1, avx2 = 1, fma = 1, f16c = 1,
    avx512f = 1, avx512bw = 1, avx512vl = 1, avx512dq = 1, avx512_bf16 = 1, avx512_fp16 = 1,
    amx_bf16 = 1, l1d = 48 * KiB, l2 = 2 * MiB,
  }),
  cpu("neon", "64-bit Arm with NEON", { aarch64 = 1, neon = 1, l1d = 64 * KiB }),

  gpu("sm_80", "NVIDIA A100", {
    cc = 80, sms = 108, smem_optin = 163 * KiB, smem_per_sm = 164 * KiB, l2 = 40 * MiB,
    threads_per_sm = 2048, blocks_per_sm = 32,
  }),
  gpu("sm_86", "NVIDIA GeForce RTX 3090", {
    cc = 86, sms = 82, smem_optin = 99 * KiB, smem_per_sm = 100 * KiB, l2 = 6 * MiB,
    threads_per_sm = 1536, blocks_per_sm = 16,
  }),
  gpu("sm_89", "NVIDIA GeForce RTX 4090", {
    cc = 89, sms = 128, smem_optin = 99 * KiB, smem_per_sm = 100 * KiB, l2 = 72 * MiB,
    threads_per_sm = 1536, blocks_per_sm = 24,
  }),
  gpu("sm_90a", "NVIDIA H100 SXM", {
    cc = 90, sms = 132, smem_optin = 227 * KiB, smem_per_sm = 228 * KiB, l2 = 50 * MiB,
    threads_per_sm = 2048, blocks_per_sm = 32,
  }),
  gpu("sm_100a", "NVIDIA B200", {
    cc = 100, sms = 148, smem_optin = 227 * KiB, smem_per_sm = 228 * KiB, l2 = 126 * MiB,
    threads_per_sm = 2048, blocks_per_sm = 32,
  }),
  gpu("sm_120", "NVIDIA GeForce RTX 5090", {
    cc = 120, sms = 170, smem_optin = 99 * KiB, smem_per_sm = 100 * KiB, l2 = 96 * MiB,
    threads_per_sm = 1536, blocks_per_sm = 24,
  }),
}
