# Every host finds every other by name: a marked block in /etc/hosts, unless the site's DNS knows them.
include:
  - p0_plan

{%- if salt['saltern.view']('names:provider') == 'hosts' %}
"names: hosts of the plan":
  saltern.hosts_file:
    - name: /etc/hosts
    - require:
      - sls: p0_plan
{%- endif %}
