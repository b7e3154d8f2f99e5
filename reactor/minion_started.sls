# A minion started: the join queue looks whether its host has to be set up.
"minion started":
  runner.saltern_join.knock:
    - args:
      - minion_id: {{ data['id'] | json }}
      - started: true
