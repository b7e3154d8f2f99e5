# Phase 4 is complete: the tree has its features, every daemon of this host runs it and answers, the node is registered.
{%- set daemons = salt['slurm_cluster.daemons']() %}
include:
  - p1_foundation
{%- for daemon in daemons %}
  - p4_scheduler.{{ 'login' if daemon == 'sackd' else daemon }}
{%- endfor %}

"p4_scheduler: gate":
  saltern.gate:
    - name: p4_scheduler
    - phase: p4_scheduler
    - require:
      - sls: p1_foundation
{%- if daemons %}
      - sls: p4_scheduler.*
{%- endif %}
