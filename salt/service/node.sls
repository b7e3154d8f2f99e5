# A node takes jobs once its last gate is open, and not before.
include:
  - p7_identity

"node: in service":
  node_join.in_service:
    - name: join
    - require:
      - sls: p7_identity
