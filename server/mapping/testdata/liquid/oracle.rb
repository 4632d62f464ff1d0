# Renders templates with Liquid itself: a JSON array of {template, record} on
# standard input, a JSON array of {output} or {error} on standard output.
require "json"
require "liquid"

results = JSON.parse($stdin.read).map do |c|
  begin
    template = Liquid::Template.parse(c["template"], error_mode: :strict)
    { output: template.render!({ "record" => c["record"] }, strict_variables: true, strict_filters: true) }
  rescue Liquid::Error, SystemStackError, StandardError => e
    { error: e.message }
  end
end
puts JSON.generate(results)
