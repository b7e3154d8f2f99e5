# slurmdbd answers: its configuration is secret from the first byte, its database stands, its port is its own.
{%- set files = ['/etc/systemd/system/slurmdbd.service', '/etc/slurm/slurmdbd.conf', '/etc/slurm/jwt_hs256.key'] %}
include:
  - p4_scheduler.conf_dir
  - p4_scheduler.database
  - p4_scheduler.logs

"slurmdbd: configuration":
  secret.file:
    - name: /etc/slurm/slurmdbd.conf
    - text: {{ salt['slurm_conf.slurmdbd_text']() | json }}
    - user: slurm
    - group: slurm
    - mode: '0600'
    - require:
      - sls: p4_scheduler.conf_dir

"slurmdbd: unit":
  file.managed:
    - name: /etc/systemd/system/slurmdbd.service
    - source: salt://p4_scheduler/files/slurmdbd.service
    - user: root
    - group: root
    - mode: '0644'
    - require:
      - sls: p1_foundation

"slurmdbd: daemon":
  daemon.current:
    - name: slurmdbd
    - files: {{ files | json }}
    - port: {{ salt['saltern.view']('slurm:ports:slurmdbd') }}
    - require:
      - secret: "slurmdbd: configuration"
      - file: "slurmdbd: unit"
      - sls: p4_scheduler.database
      - sls: p4_scheduler.logs

"slurmdbd: answers":
  slurm_cluster.slurmdbd_answers:
    - name: slurmdbd
    - timeout: {{ salt['saltern.view']('waits:database_s') }}
    - require:
      - daemon: "slurmdbd: daemon"
