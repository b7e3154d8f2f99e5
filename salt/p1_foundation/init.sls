# Phase 1 is complete: ids, names, time, limits, kernel and munge are as the plan says, on the real host.
include:
  - p1_foundation.minion
  - p1_foundation.names
  - p1_foundation.accounts
  - p1_foundation.time
  - p1_foundation.limits
  - p1_foundation.kernel

"p1_foundation: gate":
  saltern.gate:
    - name: p1_foundation
    - phase: p1_foundation
    - require:
      - sls: p1_foundation.*
