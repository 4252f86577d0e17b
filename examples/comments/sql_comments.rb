# Says in a comment of each SQL statement what a program of Active Record is doing, and from which line it sends it.
#
# isotap (and whoever else reads sqlcommenter's comments) then names findings by it. From Rails 7 on that is built in:
#
#     config.active_record.query_log_tags_enabled = true
#     config.active_record.query_log_tags = [:controller, :action, :job, :source_location]
#
# This file is for earlier ones, and for Active Record without Rails. With it in config/initializers a request's
# statements have its controller and action. Others are named so:
#
#     SqlComments.action("nightly") { ... }
#
# A comment makes another text of each statement's place, and so another prepared statement of it.
require "erb"
require "active_record"

module SqlComments
  class << self
    # The directory whose files count as the program's.
    attr_writer :root

    def root
      @root ||= File.join(defined?(Rails) && Rails.respond_to?(:root) && Rails.root ? Rails.root.to_s : Dir.pwd, "")
    end

    # Runs a block whose statements belong to what the name says, and returns what it returns.
    def action(name)
      before = Thread.current[:sql_comments_action]
      Thread.current[:sql_comments_action] = name
      yield
    ensure
      Thread.current[:sql_comments_action] = before
    end

    # Returns the comment for the statement that is about to be sent, with a blank before it; empty if there is nothing to
    # say.
    def comment
      pairs = { controller: Thread.current[:sql_comments_action] }
      if (at = caller_locations.find { |l| ours?(l.absolute_path) })
        pairs[:file] = at.absolute_path.delete_prefix(root)
        pairs[:line] = at.lineno
      end
      said = pairs.compact.map { |k, v| "#{k}='#{ERB::Util.url_encode(v.to_s)}'" }
      said.empty? ? "" : " /*#{said.join(',')}*/"
    end

    def ours?(path)
      path && path != __FILE__ && path.start_with?(root) && !path.include?("/vendor/") && !path.include?("/gems/")
    end

    # Has an adapter add comments to what it sends.
    def prepend_to(adapter)
      by = Module.new do
        %i[execute exec_query exec_insert exec_update exec_delete exec_no_cache exec_cache].each do |name|
          next unless adapter.method_defined?(name) || adapter.private_method_defined?(name)

          define_method(name) do |sql, *rest, **options, &block|
            sql += SqlComments.comment unless sql.end_with?("*/")
            super(sql, *rest, **options, &block)
          end
        end
      end
      adapter.prepend(by)
    end
  end
end

ActiveSupport.on_load(:action_controller) do
  around_action { |controller, run| SqlComments.action("#{controller.controller_path}##{controller.action_name}", &run) }
end
%w[PostgreSQL Mysql2].each do |name|
  begin
    require "active_record/connection_adapters/#{name.downcase}_adapter"
  rescue LoadError
    next # its driver is not there
  end
  SqlComments.prepend_to(ActiveRecord::ConnectionAdapters.const_get("#{name}Adapter"))
end
