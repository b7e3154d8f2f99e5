# Phase 0: this host is the one that the plan declares. The plan itself was checked on the master, by the external pillar.
"p0_plan: gate":
  saltern.gate:
    - name: p0_plan
    - phase: p0_plan
