"""Examples for the commands for schedules."""

ADD = """\b
Examples:
  tacit schedule add "every weekday 9:00" "Summarise the commits since yesterday"
  tacit schedule add "every 2 hours" --skill check-mail --skill triage --notify desktop
  tacit schedule add +30m "Remind me to call the bank" --notify desktop
  tacit schedule add "0 9 * * 1-5" "Run the tests, report failures" --in ~/app --zone Europe/Paris
  tacit schedule add "明天下午3点" "写一份本周的总结" --notify file:notes/{date}.md
"""
LIST = """\b
Examples:
  tacit schedule list
  tacit schedule list --json | jq -r '.schedules[].name'
"""
SHOW = """\b
Examples:
  tacit schedule show weather
"""
PAUSE = """\b
Examples:
  tacit schedule pause weather
  tacit schedule resume weather
"""
RUN = """\b
Examples:
  tacit schedule run weather
  tacit schedule run weather --json | jq -r 'select(.type=="end").text'

Exit codes: 0 done, 1 a limit was reached, 11 the model or the provider failed, 130 stopped.
"""
EDIT = """\b
Examples:
  tacit schedule edit weather                         its text, in your editor
  tacit schedule edit weather --when "every day 8:00"
  tacit schedule edit weather --zone Asia/Tokyo --catch-up none
  tacit schedule edit weather --allow read_file --allow "run_command:git *"
  tacit schedule edit weather --deliver "command:mail -s weather me@example.com"
"""
RM = """\b
Examples:
  tacit schedule rm weather
  tacit schedule rm weather --yes
"""
HISTORY = """\b
Examples:
  tacit schedule history weather
  tacit schedule history weather --limit 5 --json
"""
LOGS = """\b
Examples:
  tacit schedule logs weather@20261115T090000Z
  tacit schedule logs weather                         its latest run
"""
