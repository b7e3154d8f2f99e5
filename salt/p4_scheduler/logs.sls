# The daemons' logs: readable by their group only, and rotated without a restart or a reconfigure.
{%- set log_dir = salt['saltern.view']('slurm:log_dir') %}
{%- set daemons = salt['slurm_cluster.daemons']() %}
include:
  - p1_foundation

"logs: folder":
  file.directory:
    - name: {{ log_dir }}
    - user: slurm
    - group: slurm
    - mode: '0750'
    - require:
      - sls: p1_foundation

{%- for daemon in daemons %}
"logs: {{ daemon }}":
  file.managed:
    - name: {{ log_dir }}/{{ daemon }}.log
    - replace: False
    - user: slurm
    - group: slurm
    - mode: '0640'
    - require:
      - file: "logs: folder"
{%- endfor %}

"logs: package":
  pkg.installed:
    - name: {{ salt['saltern.platform']().logrotate.package }}
    - require:
      - sls: p1_foundation

"logs: rotation":
  file.managed:
    - name: /etc/logrotate.d/saltern-slurm
    - source: salt://p4_scheduler/files/logrotate
    - template: jinja
    - context:
        log_dir: {{ log_dir }}
        daemons: {{ daemons | json }}
    - user: root
    - group: root
    - mode: '0644'
    - require:
      - pkg: "logs: package"
