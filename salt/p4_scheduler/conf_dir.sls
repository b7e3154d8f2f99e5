# /etc/slurm, on controllers and database hosts only, with the key of Slurm's tokens. Nodes and login hosts have none.
include:
  - p4_scheduler.deployed

"conf_dir: /etc/slurm":
  file.directory:
    - name: /etc/slurm
    - user: root
    - group: root
    - mode: '0755'
    - require:
      - sls: p4_scheduler.deployed

{%- if 'jwt' in salt['saltern.view']('build:features') %}
"conf_dir: token key":
  secret.file:
    - name: /etc/slurm/jwt_hs256.key
    - text: <secret:jwt_key>
    - user: slurm
    - group: slurm
    - mode: '0600'
    - require:
      - file: "conf_dir: /etc/slurm"
{%- endif %}
