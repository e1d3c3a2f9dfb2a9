#!/usr/bin/env bash
# Makes the certificates of a discovery store and writes them into secrets, unless they are valid for long enough.
#
# CodeBuild runs this during a deployment. Variables: AUTHORITY, MEMBERS, CLIENTS and ADMINISTRATOR are the ARNs of the
# secrets, HOSTS the names or IPv4 addresses of the members (with commas), MEMBER_NAME the common name of their
# certificate, CLIENT_NAMES those of the clients' (with commas), AUTHORITY_DAYS and DAYS how long they are valid, LEFT_DAYS
# what must be left, CLUSTER the cluster whose services read the secrets. The authority stays the same, so members with
# an old and with a new certificate trust each other.
# A secret keeps what it held: clients that have left the list may still run.
set -euo pipefail
umask 077
cd "$(mktemp -d)"

# held SECRET: writes a secret into value.json, which is empty if the secret has no value yet. Ends the program if AWS
# refuses, so that nothing is taken for missing that only could not be read.
held() {
  aws secretsmanager get-secret-value --secret-id "$1" --query SecretString --output text >value.json 2>error || {
    grep -q ResourceNotFoundException error || { cat error >&2; exit 1; }
    : >value.json
  }
}

# stored SECRET KEY FILE: writes one value of a secret into a file; fails if the secret has none yet. A new secret
# of CloudFormation holds random text.
stored() {
  held "$1"
  python3 -c 'import json, sys; print(json.load(open("value.json"))[sys.argv[1]], end="")' "$2" >"$3" 2>/dev/null || return 1
  rm value.json
}

# store SECRET KEY=FILE...: writes files into a secret, as one JSON object. Nothing is printed or in arguments.
store() {
  local secret=$1
  shift
  held "$secret"
  python3 -c 'import json, sys
try:
    held = dict(json.load(open("value.json")))
except (TypeError, ValueError):
    held = {}
print(json.dumps({**held, **{key: open(name).read() for key, _, name in (word.partition("=") for word in sys.argv[1:])}}))' "$@" >new.json
  rm value.json
  aws secretsmanager put-secret-value --secret-id "$secret" --secret-string file://new.json >/dev/null
  rm new.json
}

# lasts FILE DAYS: whether a certificate is valid that long.
lasts() {
  openssl x509 -in "$1" -noout -checkend $(($2 * 86400)) >/dev/null
}

# names FILE: the hosts of a certificate, sorted.
names() {
  openssl x509 -in "$1" -noout -ext subjectAltName | sed 's/IP Address/IP/g' | grep -oE '(DNS|IP):[^, ]*' | sort | paste -sd,
}

# used SECRET KEY FILE: remembers since when a value of a secret, a certificate, is valid.
ages=()
used() {
  ages+=("$1:$2:=$(date --date="$(openssl x509 -in "$3" -noout -startdate | cut --delimiter== --fields=2)" +%s)")
}

# issue NAME EXTENSIONS [SUBJECT]: a key NAME.key and a certificate NAME.crt of the authority.
issue() {
  openssl ecparam -genkey -name prime256v1 -noout -out "$1.key"
  openssl req -new -key "$1.key" -subj "${3:-/CN=$1}" -out "$1.csr"
  openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days "$DAYS" -sha256 \
    -extfile <(printf '%b' "$2") -out "$1.crt" 2>/dev/null
}

if ! stored "$AUTHORITY" cert ca.crt || ! stored "$AUTHORITY" key ca.key || ! lasts ca.crt "$DAYS"; then
  echo "new authority, valid for $AUTHORITY_DAYS days"
  openssl ecparam -genkey -name prime256v1 -noout -out ca.key
  openssl req -x509 -new -key ca.key -subj "/CN=discovery" -days "$AUTHORITY_DAYS" -sha256 -out ca.crt \
    -addext "keyUsage=critical,keyCertSign,cRLSign"
  store "$AUTHORITY" cert=ca.crt key=ca.key
fi

wanted=$(tr ',' '\n' <<<"$HOSTS" | sed -E 's/^[0-9.]+$/IP:&/; t; s/^/DNS:/' | sort | paste -sd,)
# valid SECRET FILE KEY: whether a secret holds a certificate of this authority that lasts.
valid() {
  stored "$1" "$3" "$2" && lasts "$2" "$LEFT_DAYS" && openssl verify -CAfile ca.crt "$2" >/dev/null 2>&1
}
usage='basicConstraints=critical,CA:false\nkeyUsage=critical,digitalSignature\n'

if valid "$MEMBERS" old.crt cert && [ "$(names old.crt)" = "$wanted" ]; then
  echo "the members' certificate stays"
  used "$MEMBERS" cert old.crt
else
  issue "$MEMBER_NAME" "${usage}extendedKeyUsage=serverAuth,clientAuth\nsubjectAltName=$wanted\n"
  store "$MEMBERS" ca=ca.crt "cert=$MEMBER_NAME.crt" "key=$MEMBER_NAME.key"
  echo "new certificate of the members, valid for $DAYS days"
  used "$MEMBERS" cert "$MEMBER_NAME.crt"
fi

for name in ${CLIENT_NAMES//,/ }; do
  if valid "$CLIENTS" old.crt "$name-cert"; then
    echo "the certificate of the client $name stays"
    used "$CLIENTS" "$name-cert" old.crt
  else
    issue "$name" "${usage}extendedKeyUsage=clientAuth\n"
    store "$CLIENTS" ca=ca.crt "$name-cert=$name.crt" "$name-key=$name.key"
    echo "new certificate of the client $name, valid for $DAYS days"
    used "$CLIENTS" "$name-cert" "$name.crt"
  fi
done

if valid "$ADMINISTRATOR" old.crt cert; then
  echo "the administrator's certificate stays"
  used "$ADMINISTRATOR" cert old.crt
else
  # Without a common name, which etcd would take for a user. The password stays: the store has it.
  issue administrator "${usage}extendedKeyUsage=clientAuth\n" /O=administrator
  stored "$ADMINISTRATOR" password password || openssl rand -hex 32 | tr -d '\n' >password
  store "$ADMINISTRATOR" ca=ca.crt cert=administrator.crt key=administrator.key password=password
  echo "new certificate of the administrator, valid for $DAYS days"
  used "$ADMINISTRATOR" cert administrator.crt
fi

# Tasks get their certificates when they start. etcd itself reads its files again for each connection
# (client/pkg/transport/listener.go of etcd-io/etcd), but nothing writes them while a task runs. So services whose
# tasks are older than their certificate start again, and members one after the other, so that two serve. The age decides,
# so the next run goes on where one has failed.
python3 - "$(command -v aws)" "$CLUSTER" "$MEMBERS" "${ages[@]}" <<'PYTHON'
import datetime, json, subprocess, sys, time

aws, cluster, members, *pairs = sys.argv[1:]
began = {name: int(seconds) for name, _, seconds in (each.rpartition("=") for each in pairs)}


def ecs(call, **request):
    words = [aws, "ecs", call, "--cli-input-json", json.dumps(request), "--output", "json"]
    return json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout)


def described(service):
    return ecs("describe-services", cluster=cluster, services=[service])["services"][0]


for service in ecs("list-services", cluster=cluster)["serviceArns"]:
    found = described(service)
    deployed = [each for each in found["deployments"] if each["status"] == "PRIMARY"]
    if found["status"] != "ACTIVE" or not deployed:
        continue
    task = ecs("describe-task-definition", taskDefinition=found["taskDefinition"])["taskDefinition"]
    read = [each["valueFrom"] for part in task["containerDefinitions"] for each in part.get("secrets", [])]
    held = [name for name in began if any(value.startswith(name) for value in read)]
    age = datetime.datetime.fromisoformat(str(deployed[0]["createdAt"])).timestamp()
    if not any(began[name] > age for name in held):
        continue
    name = found["serviceName"]
    ecs("update-service", cluster=cluster, service=name, forceNewDeployment=True)
    print(f"{name} starts again with its new certificate", flush=True)
    if not any(each.startswith(members) for each in held):
        continue
    for _ in range(60):
        states = [each.get("rolloutState") for each in described(service)["deployments"]]
        if states == ["COMPLETED"]:
            break
        time.sleep(10)
    else:
        sys.exit(f"{name} is not steady after 10 minutes; the other members keep their certificate until the next run")
PYTHON
