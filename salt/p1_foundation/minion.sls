# The minion of an admitted host needs no join token any more: it goes, so that nobody finds one on a node.
include:
  - p0_plan

"minion: join token":
  file.absent:
    - name: /etc/salt/minion.d/saltern_join_token.conf
    - require:
      - sls: p0_plan
