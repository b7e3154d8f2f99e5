# MariaDB for slurmdbd: configured before its package first starts it, then the database and its account.
{%- set platform = salt['saltern.platform']().mariadb %}
include:
  - p1_foundation

"database: configuration":
  file.managed:
    - name: {{ platform.conf }}
    - contents: {{ salt['slurm_database.conf_text']() | json }}
    - user: root
    - group: root
    - mode: '0644'
    - makedirs: True
    - require:
      - sls: p1_foundation

"database: package":
  pkg.installed:
    - name: {{ platform.package }}
    - require:
      - file: "database: configuration"

"database: daemon":
  daemon.current:
    - name: {{ platform.service }}
    - files: [{{ platform.conf }}]
    - port: 3306
    - require:
      - pkg: "database: package"

"database: slurmdbd's":
  slurm_database.present:
    - name: slurmdbd
    - require:
      - daemon: "database: daemon"
