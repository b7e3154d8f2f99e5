# A minion showed its key: the join queue looks at it.
"key shown":
  runner.saltern_join.knock:
    - args:
      - minion_id: {{ data['id'] | json }}
