# Who vouches for the directory's servers, and the password with which this host may read: for whoever asks it by itself.
{%- set directory = salt['saltern.view']('directory') %}
{%- set ca = salt['saltern.view']('certificates:ca') %}
{%- set before = salt['saltern.phase_before']('p7_identity') %}
include:
  - {{ before }}

{%- if ca %}
"authority: certificates":
  file.managed:
    - name: /etc/saltern/directory-ca.pem
    - contents: {{ ca | json }}
    - user: root
    - group: root
    - mode: '0644'
    - makedirs: True
    - dir_mode: '0755'
    - require:
      - sls: {{ before }}
{%- endif %}

{%- if directory.bind_dn %}
"authority: password":
  secret.file:
    - name: /etc/saltern/directory.secret
    - text: <secret:directory_client_password>
    - user: root
    - group: root
    - mode: '0600'
    - require:
      - sls: {{ before }}
      {%- if ca %}
      - file: "authority: certificates"
      {%- endif %}
{%- endif %}
