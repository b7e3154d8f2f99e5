# A node takes jobs once its last gate is open, and not before.
include:
  - p4_scheduler

"node: in service":
  node_join.in_service:
    - name: join
    - require:
      - sls: p4_scheduler
