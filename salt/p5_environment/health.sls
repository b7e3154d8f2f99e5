# The node's health checks from its node type, the program that runs them, and the drain logic beside it.
{%- set health = salt['saltern.view']('health') %}
{%- set python = salt['saltern.platform']().python %}
include:
  - p4_scheduler
{%- if health.provider == 'lbnl' %}
  - p5_environment.lbnl
{%- endif %}

"health: Python":
  pkg.installed:
    - name: {{ python.package }}
    - require:
      - sls: p4_scheduler

"health: drain logic's library":
  file.recurse:
    - name: /usr/lib/saltern/saltern
    - source: salt://_utils/saltern
    - include_pat: E@^(__init__|drain_[a-z]+|node_states|slurm_answers)\.py$
    - user: root
    - group: root
    - dir_mode: '0755'
    - file_mode: '0644'
    - require:
      - pkg: "health: Python"

"health: checker":
  file.managed:
    - name: /usr/lib/saltern/node_health.py
    - source: salt://p5_environment/files/node_health.py
    - user: root
    - group: root
    - mode: '0644'
    - require:
      - pkg: "health: Python"

"health: checker's command":
  file.managed:
    - name: /usr/lib/saltern/node_health
    - source: salt://p5_environment/files/node_health
    - template: jinja
    - context:
        python: {{ python.path }}
    - user: root
    - group: root
    - mode: '0755'
    - require:
      - file: "health: checker"

"health: record and outbox":
  file.directory:
    - name: /var/lib/saltern/health
    - user: root
    - group: root
    - mode: '0700'
    - makedirs: True
    - require:
      - sls: p4_scheduler

"health: checks":
  nhc.configured:
    - name: /etc/nhc/nhc.conf
    - require:
      - file: "health: checker's command"

# Last: from here on slurmd's program does something.
"health: drain logic":
  file.managed:
    - name: /usr/lib/saltern/health_report.py
    - source: salt://p5_environment/files/health_report.py
    - user: root
    - group: root
    - mode: '0644'
    - require:
      - file: "health: drain logic's library"
      - file: "health: record and outbox"
      - nhc: "health: checks"
{%- if health.provider == 'lbnl' %}
      - sls: p5_environment.lbnl
{%- endif %}

"health: events":
  beacon.present:
    - name: saltern_health
    - save: True
    - interval: 10
    - disable_during_state_run: False
    - require:
      - file: "health: drain logic"
